//! `virtbench man` and `virtbench completions`: both come out of the definition of the command line.

use std::fs;
use std::io::{self, Write};

use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;

use crate::args::{Arguments, ManArgs};
use crate::exit::{MEANINGS, Outcome};

/// Writes `virtbench.1` and a page for each command.
pub fn execute(args: &ManArgs) -> Outcome {
    fs::create_dir_all(&args.dir).with_context(|| format!("cannot make {}", args.dir.display()))?;
    clap_mangen::generate_to(Arguments::command(), &args.dir)
        .with_context(|| format!("cannot write into {}", args.dir.display()))?;
    let mut page = Vec::new();
    Man::new(Arguments::command()).render(&mut page)?;
    writeln!(page, ".SH EXIT STATUS")?;
    for (code, meaning) in MEANINGS {
        writeln!(page, ".TP\n\\fB{code}\\fR\n{meaning}")?;
    }
    fs::write(args.dir.join("virtbench.1"), page)?;
    Ok(())
}

/// Writes the shell's completion script to stdout.
pub fn completions(shell: clap_complete::Shell) -> Outcome {
    // The crate panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "virtbench", &mut script);
    io::stdout().write_all(&script)?;
    Ok(())
}

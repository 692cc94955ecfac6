//! `virtbench man`

use std::fs;
use std::io::Write;

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

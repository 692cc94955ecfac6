//! `virtbench completions`

use std::io::{self, Write};

use clap::CommandFactory;

use crate::args::Arguments;
use crate::exit::Outcome;

/// Writes the shell's completion script to stdout.
pub fn execute(shell: clap_complete::Shell) -> Outcome {
    // The crate panics where it cannot write.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "virtbench", &mut script);
    io::stdout().write_all(&script)?;
    Ok(())
}

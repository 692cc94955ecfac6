//! `virtbench completions`

use clap::CommandFactory;

use crate::args::Arguments;
use crate::exit::Outcome;

/// Writes the shell's completion script to stdout.
pub fn execute(shell: clap_complete::Shell) -> Outcome {
    clap_complete::generate(shell, &mut Arguments::command(), "virtbench", &mut std::io::stdout());
    Ok(())
}

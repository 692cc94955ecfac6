//! A command as a workload: an application that is not virtbench's own, run where it is to be measured.

use serde::{Deserialize, Serialize};

use super::bounds::{WorkloadError, check};

/// The most words of a command.
const MAX_WORDS: usize = 4096;

/// A program with its arguments, run in a folder on the storage that is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CommandSpec {
    /// The program, as a path or a name looked up on the search path, and its arguments.
    pub words: Vec<String>,
    /// The most of what it prints that is kept, in bytes, from the end.
    pub output_bytes: u32,
}

impl CommandSpec {
    /// The command, with 64 KiB of its output.
    #[must_use]
    pub fn new(words: Vec<String>) -> Self {
        Self { words, output_bytes: 64 << 10 }
    }

    pub(super) fn validate(&self) -> Result<(), WorkloadError> {
        let possible = |word: &String| !word.contains('\0');
        let has_program = self.words.first().is_some_and(|program| !program.is_empty());
        if !has_program || self.words.len() > MAX_WORDS || !self.words.iter().all(possible) {
            return Err(WorkloadError::Nothing { key: "command" });
        }
        check("output", self.output_bytes.into(), 0, 1 << 20, virtbench_units::format_bytes)
    }
}

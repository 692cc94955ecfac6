//! The command line that goes into a run's record.

use std::sync::OnceLock;

/// The one that a file stands for.
static REPLACED: OnceLock<Vec<String>> = OnceLock::new();

/// What was run: what stands on the command line, or what a file named on it stands for.
pub fn words() -> Vec<String> {
    REPLACED.get().cloned().unwrap_or_else(|| std::env::args().collect())
}

/// A file stands for these words. The first such call counts.
pub fn replace(words: Vec<String>) {
    let _ = REPLACED.set(words);
}

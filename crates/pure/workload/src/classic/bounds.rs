//! Figures of workloads are held against their limits.

use thiserror::Error;

use crate::files::FileLoadError;

/// A workload that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WorkloadError {
    /// A figure outside its limits.
    #[error("{key}={value} is outside {least} to {most}")]
    Range {
        /// The key to change.
        key: &'static str,
        /// What was given.
        value: String,
        /// The least allowed.
        least: String,
        /// The most allowed.
        most: String,
    },
    /// A load on files.
    #[error(transparent)]
    Files(#[from] FileLoadError),
    /// Nothing is left to do.
    #[error("{key} names nothing to run: leave it out for all")]
    Nothing {
        /// The key to change.
        key: &'static str,
    },
}

/// Holds a figure against its limits; `words` writes it as the notation does.
pub(super) fn check(
    key: &'static str,
    value: u64,
    least: u64,
    most: u64,
    words: fn(u64) -> String,
) -> Result<(), WorkloadError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(WorkloadError::Range { key, value: words(value), least: words(least), most: words(most) })
}

pub(super) fn plain(value: u64) -> String {
    value.to_string()
}

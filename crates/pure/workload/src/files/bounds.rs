//! Numbers of loads on files are held against their limits.

use thiserror::Error;

use super::model::ModelError;

/// A load on files that makes no sense.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum FileLoadError {
    /// A number outside its limits.
    #[error("{flag} {value} is outside {least} to {most}")]
    Range {
        /// The flag to change.
        flag: &'static str,
        /// What was given.
        value: u64,
        /// The least allowed.
        least: u64,
        /// The most allowed.
        most: u64,
    },
    /// A rate that is no rate.
    #[error("rate={0}/s is outside 0.001/s to 10000000/s, of all threads together")]
    Rate(String),
    /// A flag that this load has no use for.
    #[error("{flag}: {why}")]
    Useless {
        flag: &'static str,
        /// Why, and what to do.
        why: &'static str,
    },
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
}

pub(super) fn range(flag: &'static str, value: u64, least: u64, most: u64) -> Result<(), FileLoadError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(FileLoadError::Range { flag, value, least, most })
}

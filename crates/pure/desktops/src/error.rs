//! What can be wrong with a day.

use thiserror::Error;

/// What can be wrong with a day.
#[derive(Debug, Error)]
pub enum DayError {
    /// It is no TOML, or has fields that no day has.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A field has an invalid value.
    #[error("{field}: {why}")]
    Value {
        /// Which field.
        field: String,
        /// What is wrong, and what would do.
        why: String,
    },
}

//! Why a recipe cannot be used.

use thiserror::Error;

/// A recipe that cannot be used, and why.
#[derive(Debug, Error)]
pub enum RecipeError {
    /// It is no TOML, has an unknown field, lacks one, or a value is of another kind; the text names line and column.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// An invalid value.
    #[error("{field}: {why}")]
    Value {
        /// The field, as in the file: `services.postgresql.command`.
        field: String,
        /// What is wrong with it, and what would do.
        why: String,
    },
}

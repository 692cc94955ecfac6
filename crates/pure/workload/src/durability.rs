//! What is durable when.

use serde::{Deserialize, Serialize};

/// What a flush makes durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlushKind {
    /// Data, and what is needed to find them (fdatasync).
    #[default]
    Data,
    /// Everything about a file (fsync).
    All,
}

/// What a write makes durable before it completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WriteSync {
    /// Nothing.
    #[default]
    None,
    /// Its data, and what is needed to find them (O_DSYNC).
    Data,
    /// Everything about the file (O_SYNC).
    All,
}

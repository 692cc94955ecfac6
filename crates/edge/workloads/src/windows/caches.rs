//! The cache of files, which Windows empties for nobody.

use std::path::PathBuf;

use crate::runner::RunError;

/// Whether the system can do it for a workload with files.
///
/// # Errors
/// Always: what would be measured is the cache.
pub(crate) fn check() -> Result<(), RunError> {
    Err(RunError::Misfit(
        "drop-caches is unavailable on Windows, which has no call that empties its cache of files: leave it out".into(),
    ))
}

/// Says that nothing was dropped; returns what a reader should know.
pub(crate) fn drop_caches(_files: &[PathBuf]) -> String {
    "drop-caches: unavailable, because Windows has no call that empties its cache of files".to_owned()
}

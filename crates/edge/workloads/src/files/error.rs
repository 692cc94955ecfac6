//! Why a load on files could not be begun. What goes wrong on the way is [`crate::files::Ended`].

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use virtbench_units::format_bytes;
use virtbench_workload::files::FileLoadError;

/// Why a load on files could not be begun. Each message says what to do next.
#[derive(Debug, Error)]
pub enum FilesError {
    /// The load makes no sense.
    #[error(transparent)]
    Load(#[from] FileLoadError),
    /// The folder it would work in holds something else.
    #[error(
        "{path} exists and was not made by virtbench: move it away, or name another directory",
        path = .0.display()
    )]
    Foreign(PathBuf),
    /// Another run works in it.
    #[error("{path} is in use by another run: wait for it, or name another directory", path = .0.display())]
    Busy(PathBuf),
    /// The file system has no room for its files.
    #[error(
        "no room for {} at {path}: {} are free; lower --size or --files, or name another directory",
        format_bytes(*wanted_bytes), format_bytes(*free_bytes), path = path.display()
    )]
    Full {
        /// The directory.
        path: PathBuf,
        /// What the files need, in bytes.
        wanted_bytes: u64,
        /// What is free, in bytes.
        free_bytes: u64,
    },
    /// The system has not what the load needs.
    #[error("{0}")]
    Lacking(&'static str),
    /// It was interrupted before anything was measured.
    #[error("interrupted while the files were being made; nothing is left of them")]
    Interrupted,
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// There is no memory or thread for it.
    #[error("cannot get {what}: {source}")]
    Resource {
        /// What was asked for.
        what: &'static str,
        /// What the operating system said.
        source: io::Error,
    },
}

impl FilesError {
    /// For `map_err`: an operating-system error while doing `action` to `path`.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

/// Whether the operating system says that the file system, or a quota, is full.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

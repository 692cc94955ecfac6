//! Why there is no appliance.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;
use virtbench_lab::{CommandError, FilesystemError, ImageMakingError};
use virtbench_units::format_bytes;

/// What kind of failure, for an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The recipe, or what was asked for, cannot be had.
    Asked,
    /// Something is missing on this host.
    Host,
    /// A file cannot be written, or a folder has no room.
    Storage,
    /// It was stopped.
    Stopped,
    /// A program failed.
    Other,
}

/// Why there is no appliance.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ApplianceError {
    #[error("{0}")]
    Host(String),
    #[error(
        "{program} is missing, which builds appliances: run `scripts/setup.sh appliances`, or `apt install {package}`"
    )]
    Missing { program: &'static str, package: &'static str },
    #[error(
        "appliances are built as root, or where a user may have namespaces, and here neither is so ({said}): run this as root; or \
         allow user namespaces (`sysctl kernel.unprivileged_userns_clone=1`) and give yourself subordinate ids \
         (`usermod --add-subuids 100000-165535 --add-subgids 100000-165535 USER`); a command with --accelerator uml is in a \
         user namespace itself and builds nothing: let `virtbench appliance build` do that before it"
    )]
    NoNamespaces { said: String },
    #[error("{0} needs root: the appliance's image is mounted by a loop device")]
    NeedsRoot(&'static str),
    #[error(
        "the servers of packages cannot be reached: {said}. Look at the network, and at Acquire::http::Proxy in apt's \
         configuration; appliances that are built need no network (`virtbench appliance list`)"
    )]
    NoNetwork { said: String },
    #[error("{} has no package {name}{}", suite, close_names(close))]
    NoPackage { name: String, suite: String, close: Vec<String> },
    #[error("the servers no longer have the packages in the lists that are here: give --update")]
    Outdated,
    #[error("apt-get cannot install these packages together: {said}")]
    Packages { said: String },
    #[error(
        "{what} needs {} in {}, and {} are free: make room there, `virtbench appliance remove --unused`, or set \
         VIRTBENCH_CACHE to a folder on a larger disk", format_bytes(*needed), folder.display(), format_bytes(*free)
    )]
    NoRoom { what: String, folder: PathBuf, needed: u64, free: u64 },
    #[error("{what} is in use by process {holder}, still after {} s: wait for it, or end it", limit.as_secs())]
    Busy { what: String, holder: String, limit: Duration },
    #[error("{0} was not built yet: virtbench appliance build {0}")]
    NotBuilt(String),
    #[error("the recipe {0} has no data")]
    NoData(String),
    #[error("{what} failed: {said}; everything that it said is in {}", log.display())]
    Build { what: String, said: String, log: PathBuf },
    #[error("{what} was not done after {} s; raise --limit, and look at {}", limit.as_secs(), log.display())]
    TooLong { what: String, limit: Duration, log: PathBuf },
    #[error("stopped; what was begun is removed")]
    Stopped,
    #[error("the data {key:?} cannot be prepared: {source}")]
    Fill { key: String, source: Box<dyn Error + Send + Sync> },
    #[error(transparent)]
    Filesystem(#[from] FilesystemError),
    #[error(transparent)]
    Overlay(#[from] ImageMakingError),
    #[error(transparent)]
    Command(CommandError),
    #[error("cannot {action} {}: {source}", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    #[error("{} is no manifest: {source}; remove its folder, and build again", path.display())]
    Manifest { path: PathBuf, source: serde_json::Error },
}

impl From<CommandError> for ApplianceError {
    fn from(error: CommandError) -> Self {
        match error {
            CommandError::Stopped { .. } => Self::Stopped,
            other => Self::Command(other),
        }
    }
}

impl ApplianceError {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoPackage { .. } | Self::Packages { .. } | Self::NotBuilt(_) | Self::NoData(_) => {
                ErrorKind::Asked
            }
            Self::Host(_) | Self::Missing { .. } | Self::NoNamespaces { .. } => ErrorKind::Host,
            Self::NeedsRoot(_) | Self::NoNetwork { .. } | Self::Busy { .. } => ErrorKind::Host,
            Self::NoRoom { .. } | Self::File { .. } | Self::Manifest { .. } => ErrorKind::Storage,
            Self::Stopped => ErrorKind::Stopped,
            _ => ErrorKind::Other,
        }
    }

    /// For `map_err` of what is done with a file.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { action, path, source }
    }
}

fn close_names(close: &[String]) -> String {
    if close.is_empty() {
        return ": look for it with `apt-cache search`".into();
    }
    format!(": did you mean {}?", close.join(" or "))
}

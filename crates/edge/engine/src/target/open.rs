//! Finding out what a target is and opening it.

use virtbench_record::TargetFacts;

use super::error::TargetError;
#[cfg(unix)]
use super::linux::open_path;
#[cfg(windows)]
use super::windows::open_path;
use super::{Source, Target, TargetName, TargetRequest};

/// Size of the null target unless told otherwise, in bytes.
const NULL_BYTES: u64 = 1 << 30;

impl Target {
    /// Opens what the request names, makes and writes a file that does not exist, and refuses
    /// whatever would harm foreign data. `on_progress` is told how many bytes of how many have
    /// been written; when it answers `false`, writing ends with [`TargetError::Interrupted`].
    ///
    /// # Errors
    /// See [`TargetError`]; a file that could not be written whole is removed again.
    pub fn open(
        request: &TargetRequest,
        on_progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Self, TargetError> {
        match TargetName::parse(&request.path)? {
            TargetName::Path(path) => open_path(request, &path, on_progress),
            TargetName::Null => Ok(null(request.size_bytes.unwrap_or(NULL_BYTES))),
            #[cfg(feature = "network-targets")]
            TargetName::Nbd(uri) => super::network::open_nbd(request, &uri),
            #[cfg(feature = "network-targets")]
            TargetName::VhostUser(socket) => super::network::open_vhost_user(request, &socket),
            #[cfg(not(feature = "network-targets"))]
            TargetName::Nbd(_) | TargetName::VhostUser(_) => Err(TargetError::NotBuilt(request.path.clone())),
        }
    }
}

fn null(size_bytes: u64) -> Target {
    Target {
        source: Source::Null,
        facts: TargetFacts::null(size_bytes),
        notes: Vec::new(),
        faults: None,
        ledger: None,
    }
}

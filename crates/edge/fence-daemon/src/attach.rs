//! Which cache belongs to a device, and whether it is the newest: a start that would pass by what a cache alone has, or take
//! an older copy of it for the newest, is refused.
//!
//! The number of the cache's superblock rises with every start. The device's label says what it was; it is written before
//! the superblock changes, as [`Cached::Cache::beginning`], and after: so a crash at any instant leaves a label that allows
//! the superblock before and the one behind it, neither of which differs in what it holds, and nothing else.

use std::fs::File;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use virtbench_fence::cache::{Inspection, Origin, origin};

use crate::attach_error::AttachError;
use crate::label::{Cached, Label, LabelError};
use crate::memory_log::path_of;
use crate::serve_error::ServeError;

/// The cache that takes the place of one which was emptied at `start`: follows from it, so that a crash between the
/// superblock and the label leaves nothing that is not known.
pub(crate) fn successor(cache: &Origin) -> [u8; 16] {
    let hash = Sha256::new().chain_update(cache.uuid).chain_update(cache.start.to_le_bytes()).finalize();
    let mut uuid = [0; 16];
    uuid.copy_from_slice(&hash[..16]);
    uuid
}

/// Where the log in memory of the cache that follows the one with these superblocks is, on the device `fast`.
///
/// # Errors
/// There is no superblock.
pub(crate) fn next_log(folder: &Path, fast: &str, superblocks: &[u8]) -> Result<PathBuf, ServeError> {
    let found =
        origin(superblocks).map_err(|source| ServeError::Cache { device: fast.to_owned(), source })?;
    Ok(path_of(folder, successor(&found)))
}

/// Which cache the fast device holds, by its superblocks.
///
/// # Errors
/// None, though the label of `device` may mean one.
pub(crate) fn find(
    label: Option<(&Label, &str)>,
    fast: &str,
    superblocks: &[u8],
) -> Result<Origin, ServeError> {
    let fast = fast.to_owned();
    origin(superblocks).map_err(|source| match label {
        Some((Label { cached: Cached::Cache { .. }, .. }, device)) => {
            AttachError::Another { device: device.to_owned(), fast }.into()
        }
        _ => ServeError::Cache { device: fast, source },
    })
}

/// Whether a cache is the one that the label of `device` means, and the newest of it. `is_empty` says whether it holds
/// nothing.
///
/// # Errors
/// It is not, or cannot be read.
pub(crate) fn check(
    label: &Label,
    [device, fast]: [&str; 2],
    cache: &Origin,
    is_empty: impl FnOnce() -> Result<bool, ServeError>,
) -> Result<(), ServeError> {
    let (device, fast) = (device.to_owned(), fast.to_owned());
    let (uuid, newest, beginning) = match label.cached {
        Cached::Unknown => return Ok(()),
        Cached::Nothing if is_empty()? => return Ok(()),
        Cached::Nothing => return Err(AttachError::Forgotten { device, fast }.into()),
        Cached::Cache { uuid, start, beginning } => (uuid, start, beginning),
    };
    let start = cache.start;
    let next = beginning && start == newest + 1;
    // Of two superblocks one may have been damaged; the other says the same.
    let other_copy = cache.is_single && start + 1 == newest;
    if cache.uuid == uuid && (start == newest || next || other_copy) {
        return Ok(());
    }
    if next && cache.uuid == successor(&Origin { uuid, start: newest, is_single: false }) {
        return Ok(());
    }
    Err(match start {
        _ if cache.uuid != uuid => AttachError::Another { device, fast },
        _ if start < newest => AttachError::OlderCache { device, fast, start, newest },
        _ => AttachError::OlderDevice { device, fast, start, newest },
    }
    .into())
}

/// Whether a device may be used without a cache; the label says so from now on.
///
/// # Errors
/// A cache may have what it has not, or the label cannot be written.
pub(crate) fn alone(label: &Label, file: &File, device: &str) -> Result<(), ServeError> {
    match label.cached {
        Cached::Nothing => label.agree(file, device)?,
        Cached::Unknown => drop(label.followed_by(Cached::Nothing, file, device)?),
        Cached::Cache { .. } => return Err(AttachError::LeftOut { device: device.to_owned() }.into()),
    }
    Ok(())
}

/// Has the superblock of a cache change, which `change` does so that it is stable: the label says so before and, as `then`,
/// after.
///
/// # Errors
/// `change` fails, or the label cannot be written.
pub(crate) fn advance<E: From<LabelError>>(
    label: &Label,
    then: Label,
    (file, device): (&File, &str),
    cache: &Origin,
    change: impl FnOnce() -> Result<(), E>,
) -> Result<(), E> {
    let Origin { uuid, start, .. } = *cache;
    let before = label.followed_by(Cached::Cache { uuid, start, beginning: true }, file, device)?;
    change()?;
    let moves = then.disks != label.disks;
    let after = Label { sequence: before.sequence + 1, ..then };
    after.replace(file, device)?;
    if moves {
        // The copy before says where they were.
        after.followed_by(after.cached, file, device)?;
    }
    Ok(())
}

/// Whether a cache holds nothing.
pub(crate) fn is_empty(found: &Inspection) -> bool {
    found.partitions.iter().all(|partition| partition.free == partition.blocks)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::label::OtherCopy;

    const UUID: [u8; 16] = [1; 16];

    fn label(cached: Cached) -> Label {
        let (memory, other) = (None, OtherCopy::Same);
        Label { uuid: [7; 16], sequence: 3, disks: Vec::new(), cached, memory, other }
    }

    fn allows(cached: Cached, uuid: [u8; 16], start: u64, is_single: bool, empty: bool) -> bool {
        check(&label(cached), ["slow", "fast"], &Origin { uuid, start, is_single }, || Ok(empty)).is_ok()
    }

    #[test]
    fn the_newest_cache_is_allowed_and_no_other() {
        let at = |start, beginning| Cached::Cache { uuid: UUID, start, beginning };
        let allowed =
            |cached| (0..9).filter(|&start| allows(cached, UUID, start, false, false)).collect::<Vec<_>>();
        assert_eq!(allowed(at(5, false)), [5]);
        assert_eq!(allowed(at(5, true)), [5, 6], "the superblock may have been written or not");
        assert!(allows(at(5, false), UUID, 4, true, false), "the other copy of a damaged superblock");
        assert!(!allows(at(5, false), UUID, 3, true, false));
        assert!(!allows(at(5, false), [2; 16], 5, false, true), "another cache");
        let heir = successor(&Origin { uuid: UUID, start: 5, is_single: false });
        assert!(allows(at(5, true), heir, 6, false, true) && !allows(at(5, false), heir, 6, false, true));
        assert!(allows(Cached::Nothing, UUID, 5, false, true), "an empty one begins");
        assert!(!allows(Cached::Nothing, UUID, 5, false, false), "what it holds may be older");
        assert!(allows(Cached::Unknown, UUID, 5, false, false), "as an earlier version left it");
    }
}

//! File systems that keep their files in memory and nowhere else.

use std::path::Path;

use virtbench_record::IN_MEMORY;

use crate::system::memory_name;

/// What the reader of results is told whose load went to `path`, if that is on a file system in memory. Nothing if
/// it is not, or cannot be told.
#[must_use]
pub fn memory_note(path: &Path) -> Option<String> {
    let name = memory_name(path)?;
    Some(format!("{} is on {name}: {IN_MEMORY}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_told_from_a_disk() {
        let note = memory_note(Path::new("/dev/shm")).unwrap();
        assert_eq!(note, "/dev/shm is on tmpfs: this is memory, not a disk");
        assert_eq!(memory_note(Path::new(env!("CARGO_MANIFEST_DIR"))), None);
        assert_eq!(memory_note(Path::new("/nowhere at all")), None);
    }
}

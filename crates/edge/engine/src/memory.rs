//! File systems that keep their files in memory and nowhere else.

use std::path::Path;

use rustix::fs::statfs;
use virtbench_record::IN_MEMORY;

/// Magic numbers of such file systems (linux/magic.h) with their names.
const IN_MEMORY_KINDS: [(u32, &str); 3] =
    [(0x0102_1994, "tmpfs"), (0x8584_58f6, "ramfs"), (0x9584_58f6, "hugetlbfs")];

/// What the reader of results is told whose load went to `path`, if that is on a file system in memory. Nothing if
/// it is not, or cannot be told.
#[must_use]
pub fn memory_note(path: &Path) -> Option<String> {
    let kind = u32::try_from(statfs(path).ok()?.f_type).ok()?;
    let (_, name) = IN_MEMORY_KINDS.iter().find(|(magic, _)| *magic == kind)?;
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

//! Where a guest's memory lies: User Mode Linux maps a file, which is memory only on tmpfs. The file grows as the guest touches its
//! memory, so what is free counts less what guests that run may still take.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{Access, StatVfsMountFlags, access, statfs, statvfs};
use virtbench_host::available_memory_bytes;

/// tmpfs, as `statfs` numbers it.
const TMPFS: u32 = 0x0102_1994;

/// Where a tmpfs may be that is everybody's.
const PLACES: [&str; 2] = ["/dev/shm", "/tmp"];

/// How the kernel calls the file of its memory.
const FILE: &str = "vm_file-";

/// What guests of this process may still take.
static PROMISED: Mutex<Vec<Promised>> = Mutex::new(Vec::new());

#[derive(Debug, Clone, PartialEq, Eq)]
struct Promised {
    folder: PathBuf,
    bytes: u64,
    /// Of the guest, once it runs.
    process: Option<u32>,
}

impl Promised {
    /// Bytes that it was promised and has not touched yet.
    fn owed(&self) -> u64 {
        self.bytes.saturating_sub(self.process.map_or(0, |process| held(process, &self.folder)))
    }
}

/// Room for a guest's memory; it is free again when this goes.
#[derive(Debug)]
pub(super) struct GuestMemory(Promised);

impl GuestMemory {
    /// Room for so many bytes in a folder on tmpfs, from which programs may be run.
    ///
    /// # Errors
    /// There is none; why not, of each place, and what mends it.
    pub(super) fn reserve(bytes: u64) -> Result<Self, String> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let places: Vec<_> = PLACES.map(PathBuf::from).into_iter().chain(runtime).collect();
        let mut promised = promised();
        let folder = place(&places, bytes, &promised)?;
        let promise = Promised { folder, bytes, process: None };
        promised.push(promise.clone());
        Ok(Self(promise))
    }

    /// Where its file is to be.
    pub(super) fn folder(&self) -> &Path {
        &self.0.folder
    }

    /// What this process holds there counts as taken.
    pub(super) fn taken_by(&mut self, process: u32) {
        let mut promised = promised();
        if let Some(own) = promised.iter_mut().find(|one| **one == self.0) {
            own.process = Some(process);
        }
        self.0.process = Some(process);
    }
}

impl Drop for GuestMemory {
    fn drop(&mut self) {
        let mut promised = promised();
        if let Some(own) = promised.iter().position(|one| *one == self.0) {
            promised.swap_remove(own);
        }
    }
}

fn promised() -> MutexGuard<'static, Vec<Promised>> {
    PROMISED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first that will do.
fn place(places: &[PathBuf], bytes: u64, promised: &[Promised]) -> Result<PathBuf, String> {
    let mib = bytes >> 20;
    let owed = promised.iter().map(Promised::owed).sum();
    let available = available_memory_bytes().unwrap_or(u64::MAX).saturating_sub(owed);
    if available < bytes {
        return Err(format!(
            "a guest needs {mib} MiB of memory, and this host has {} MiB that no guest may still take: have fewer guests, or smaller ones",
            available >> 20
        ));
    }
    let mut whys = Vec::new();
    for place in places {
        let owed = promised.iter().filter(|one| one.folder == *place).map(Promised::owed).sum();
        match unfit(place, bytes, owed) {
            None => return Ok(place.clone()),
            Some(why) => whys.push(format!("{} {why}", place.display())),
        }
    }
    Err(format!(
        "a guest's memory has to lie on tmpfs, without noexec and with {mib} MiB left: {}; as root: `mount -t tmpfs -o \
         mode=1777,exec,size={}m tmpfs /dev/shm`, or start a container with a larger --shm-size",
        whys.join(", "),
        (owed >> 20) + mib + 1
    ))
}

/// Why the memory of one more guest cannot lie there, where others may still take `owed` bytes.
fn unfit(place: &Path, bytes: u64, owed: u64) -> Option<String> {
    let Ok(kind) = statfs(place) else { return Some("is not there".into()) };
    if u32::try_from(kind.f_type) != Ok(TMPFS) {
        return Some("is not tmpfs".into());
    }
    let Ok(facts) = statvfs(place) else { return Some("cannot be looked at".into()) };
    if facts.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        return Some("is mounted noexec".into());
    }
    if access(place, Access::WRITE_OK | Access::EXEC_OK).is_err() {
        return Some("cannot be written by this user".into());
    }
    let left = facts.f_bavail.saturating_mul(facts.f_frsize).saturating_sub(owed);
    (left < bytes).then(|| format!("has {} MiB left that no guest may still take", left >> 20))
}

/// Bytes that a guest has touched.
fn held(process: u32, folder: &Path) -> u64 {
    let files = fs::read_dir(format!("/proc/{process}/fd")).into_iter().flatten().flatten();
    let is_memory = |path: &PathBuf| {
        let link = fs::read_link(path).unwrap_or_default();
        let name = link.file_name().unwrap_or_default().to_string_lossy();
        link.starts_with(folder) && name.starts_with(FILE)
    };
    let memory = files.map(|entry| entry.path()).find(is_memory);
    memory.and_then(|path| fs::metadata(path).ok()).map_or(0, |facts| facts.blocks().saturating_mul(512))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_is_wrong_with_each_place_is_said() {
        assert_eq!(unfit(Path::new("/nowhere"), 1, 0).as_deref(), Some("is not there"));
        assert_eq!(unfit(Path::new("/proc"), 1, 0).as_deref(), Some("is not tmpfs"));
        let error = place(&["/proc".into(), "/nowhere".into()], 300 << 20, &[]).unwrap_err();
        assert!(
            error.contains("300 MiB left: /proc is not tmpfs, /nowhere is not there; as root: `mount"),
            "{error}"
        );
        assert!(error.contains("size=301m") && error.contains("--shm-size"), "{error}");
        let error = GuestMemory::reserve(1 << 60).unwrap_err();
        assert!(error.contains("have fewer guests, or smaller ones"), "{error}");
    }

    #[test]
    fn what_a_guest_may_still_take_is_not_another_s() {
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        let mut memory = tempfile::Builder::new().prefix(FILE).tempfile_in(folder.path()).unwrap();
        memory.write_all(&[1; 1 << 20]).unwrap();
        let own = Promised { folder: folder.path().to_owned(), bytes: 3 << 20, process: None };
        assert_eq!(own.owed(), 3 << 20);
        let own = Promised { process: Some(std::process::id()), ..own };
        assert_eq!(own.owed(), 2 << 20, "a third is touched");
        let facts = statvfs(folder.path()).unwrap();
        let left = facts.f_bavail * facts.f_frsize;
        let why = unfit(folder.path(), left / 2, left).unwrap();
        assert_eq!(why, "has 0 MiB left that no guest may still take");
        let available = available_memory_bytes().unwrap();
        let all = Promised { folder: "/elsewhere".into(), bytes: 2 * available, process: None };
        let error = place(&[folder.path().to_owned()], 1 << 20, &[all]).unwrap_err();
        assert!(error.contains("this host has 0 MiB"), "{error}");
    }

    #[test]
    fn room_is_free_again_when_its_guest_has_gone() {
        let mut room = GuestMemory::reserve(1 << 20).unwrap();
        room.taken_by(std::process::id());
        let mine = room.0.clone();
        assert!(promised().contains(&mine));
        drop(room);
        assert!(!promised().contains(&mine));
    }
}

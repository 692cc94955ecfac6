//! Memory that another process may take away while it is mapped.
//!
//! A client that shortens the file behind its memory makes the next access to it a SIGBUS, which would end the daemon and
//! with it every other disk. Seals would prevent that, but memory of a file cannot have them. So a handler puts zeroes in
//! place of the whole region, in which the access that faulted then ends, and marks the region as dead; the server of the
//! client sees that and sends it away. The kernel's own accesses, those of device I/Os, fail by themselves.

use std::io;
use std::mem::MaybeUninit;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

/// Regions of all clients at most.
const MOST: usize = 16 << 10;

/// A region that the handler knows; free while `len` is 0.
struct RegionSlot {
    taken: AtomicBool,
    base: AtomicUsize,
    len: AtomicUsize,
    dead: AtomicBool,
}

#[allow(clippy::declare_interior_mutable_const)] // the beginning of each place
const FREE: RegionSlot = RegionSlot {
    taken: AtomicBool::new(false),
    base: AtomicUsize::new(0),
    len: AtomicUsize::new(0),
    dead: AtomicBool::new(false),
};
static PLACES: [RegionSlot; MOST] = [FREE; MOST];
/// Places before this one may be in use.
static USED: AtomicUsize = AtomicUsize::new(0);
static DEATHS: AtomicU32 = AtomicU32::new(0);
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// Regions that died so far: a front end that finds the number changed looks at its own.
#[inline]
pub fn deaths() -> u32 {
    DEATHS.load(Ordering::Acquire)
}

/// Keeps an access to a mapped region from ending the process, as long as this lives.
#[derive(Debug)]
pub struct Guard {
    place: usize,
}

impl Guard {
    /// Guards `len` bytes mapped at `base`. Drop it before they are unmapped.
    ///
    /// # Errors
    /// There are too many regions, or the handler cannot be had.
    pub fn new(base: *const u8, len: usize) -> io::Result<Self> {
        install()?;
        let free = |place: &RegionSlot| {
            place.taken.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok()
        };
        let place = PLACES.iter().position(free).ok_or(io::ErrorKind::OutOfMemory)?;
        USED.fetch_max(place + 1, Ordering::AcqRel);
        PLACES[place].dead.store(false, Ordering::Release);
        PLACES[place].base.store(base as usize, Ordering::Release);
        PLACES[place].len.store(len, Ordering::Release);
        Ok(Self { place })
    }

    /// Whether it has been taken away: it has zeroes now, which no other process sees.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        PLACES[self.place].dead.load(Ordering::Acquire)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        PLACES[self.place].len.store(0, Ordering::Release);
        PLACES[self.place].taken.store(false, Ordering::Release);
    }
}

fn install() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let install = || {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed();
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: zeroes are a valid `sigaction`; `on_bus` calls only what a handler may; the old action is written whole.
        unsafe {
            let handler: extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void) = on_bus;
            (*action.as_mut_ptr()).sa_sigaction = handler as usize;
            (*action.as_mut_ptr()).sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            if libc::sigaction(libc::SIGBUS, std::ptr::null(), before.as_mut_ptr()) != 0 {
                return Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL));
            }
            let _ = BEFORE.set(before.assume_init());
            if libc::sigaction(libc::SIGBUS, action.as_ptr(), std::ptr::null_mut()) != 0 {
                return Err(io::Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL));
            }
        }
        Ok(())
    };
    INSTALLED.get_or_init(install).map_err(io::Error::from_raw_os_error)
}

/// Only loads, stores and system calls that take no lock: it may have interrupted anything.
extern "C" fn on_bus(_signal: i32, info: *mut libc::siginfo_t, _context: *mut libc::c_void) {
    // SAFETY: the kernel gives a valid `siginfo_t`, and SIGBUS has an address.
    let at = unsafe { (*info).si_addr() } as usize;
    for place in &PLACES[..USED.load(Ordering::Acquire).min(MOST)] {
        let (base, len) = (place.base.load(Ordering::Acquire), place.len.load(Ordering::Acquire));
        if len == 0 || at < base || at - base >= len || !put_zeroes(base, len) {
            continue;
        }
        if !place.dead.swap(true, Ordering::AcqRel) {
            DEATHS.fetch_add(1, Ordering::AcqRel);
        }
        return;
    }
    // Not ours: the earlier handler takes it, when the access faults again.
    if let Some(before) = BEFORE.get() {
        // SAFETY: the action that the kernel gave when ours was installed.
        unsafe { libc::sigaction(libc::SIGBUS, before, std::ptr::null_mut()) };
    }
}

/// A mapping of huge pages can be replaced as a whole only.
fn put_zeroes(base: usize, len: usize) -> bool {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED | libc::MAP_NORESERVE;
    // SAFETY: replaces a mapping that a `Guard` vouches for, and that stays mapped; everything in it is accessed as memory
    // that others change.
    let mapped = unsafe { libc::mmap(base as *mut libc::c_void, len, protection, flags, -1, 0) };
    mapped != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory};

    #[test]
    fn memory_that_was_taken_away_is_zeroes_and_known_to_be_dead() {
        let file = std::fs::File::from(memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
        ftruncate(&file, 16384).unwrap();
        let map =
            || MmapRegion::<()>::from_file(FileOffset::new(file.try_clone().unwrap(), 0), 16384).unwrap();
        let (ours, other) = (map(), map());
        let (guard, beside) =
            (Guard::new(ours.as_ptr(), 16384).unwrap(), Guard::new(other.as_ptr(), 8192).unwrap());
        let memory = ours.get_slice(0, 16384).unwrap();
        memory.write_obj(7u64, 8192).unwrap();
        let before = deaths();
        ftruncate(&file, 8192).unwrap();
        assert!(!guard.is_dead());
        assert_eq!(memory.read_obj::<u64>(8192).unwrap(), 0);
        memory.write_obj(9u64, 12288).unwrap();
        assert_eq!(memory.read_obj::<u64>(12288).unwrap(), 9);
        assert!(guard.is_dead() && !beside.is_dead() && deaths() > before);
    }
}

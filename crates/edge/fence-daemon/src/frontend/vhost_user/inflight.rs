//! What had been taken from rings and not yet given back, in memory that outlives this process.
//!
//! The client keeps the memory and hands it to the next server, which does again what this one had taken. The layout is
//! the vhost-user specification's ("Inflight I/O tracking", split rings): for each ring a header of 16 bytes and 16 bytes
//! a descriptor.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{Ordering, fence};

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use vm_memory::{Bytes, FileOffset, MmapRegion, VolatileMemory, VolatileSlice};

use super::memory::check_kind;
use super::wire::WireError;
use crate::guard::Guard;

const ENTRY_BYTES: usize = 16;
const HEADER_BYTES: usize = 16;
const ALIGN_BYTES: usize = 64;
const VERSION: u16 = 1;
/// Offsets in the header.
const VERSION_AT: usize = 8;
const SIZE_AT: usize = 10;
const LAST_HEAD_AT: usize = 12;
const USED_AT: usize = 14;
/// Offset in an entry.
const COUNTER_AT: usize = 8;
const MOST_QUEUES: u16 = 256;
const MOST_DESCRIPTORS: u16 = 32768;

/// The memory of all rings.
#[derive(Debug)]
pub struct Inflight {
    /// Goes before the memory does.
    guard: Guard,
    region: MmapRegion<()>,
    queues: u16,
    size: u16,
}

/// Bytes for one ring.
const fn ring_bytes(size: u16) -> usize {
    (HEADER_BYTES + size as usize * ENTRY_BYTES).next_multiple_of(ALIGN_BYTES)
}

/// What one ring had taken.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// Heads, in the order in which they were taken.
    pub heads: Vec<u16>,
    /// Where counting goes on.
    pub next_counter: u64,
}

impl Inflight {
    /// New memory for so many rings of so many descriptors, with the descriptor to hand out and its length.
    ///
    /// # Errors
    /// More than can be, or the system has no memory.
    pub fn create(queues: u16, size: u16) -> Result<(Self, OwnedFd, u64), WireError> {
        let bytes = Self::bytes(queues, size)?;
        let fd = memfd_create("virtbench-inflight", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)
            .map_err(WireError::Socket)?;
        ftruncate(&fd, bytes as u64).map_err(WireError::Socket)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(WireError::Socket)?;
        let own = fd.try_clone().map_err(|_| WireError::Malformed("no descriptor is left"))?;
        let inflight = Self::open(own, 0, bytes as u64, queues, size)?;
        Ok((inflight, fd, bytes as u64))
    }

    /// Memory that an earlier server made.
    ///
    /// # Errors
    /// It is not what it is said to be.
    pub fn open(fd: OwnedFd, offset: u64, len: u64, queues: u16, size: u16) -> Result<Self, WireError> {
        let bytes = Self::bytes(queues, size)?;
        check_kind(&fd)?;
        let there = file_size(fd.as_fd())?;
        let fits = offset.checked_add(len).is_some_and(|end| end <= there) && len >= bytes as u64;
        if !fits {
            return Err(WireError::Malformed("in-flight memory that is not there"));
        }
        let region = MmapRegion::from_file(FileOffset::new(File::from(fd), offset), bytes)
            .map_err(|_| WireError::Malformed("in-flight memory that cannot be mapped"))?;
        let guard = Guard::new(region.as_ptr(), bytes)
            .map_err(|_| WireError::Malformed("more memory than can be guarded"))?;
        Ok(Self { guard, region, queues, size })
    }

    /// Whether the client has taken it away.
    #[inline]
    pub fn is_dead(&self) -> bool {
        self.guard.is_dead()
    }

    fn bytes(queues: u16, size: u16) -> Result<usize, WireError> {
        if queues == 0 || queues > MOST_QUEUES || size == 0 || size > MOST_DESCRIPTORS {
            return Err(WireError::Malformed("in-flight memory for so many rings"));
        }
        Ok(ring_bytes(size) * usize::from(queues))
    }

    fn ring(&self, queue: u16) -> Option<VolatileSlice<'_, ()>> {
        let at = ring_bytes(self.size) * usize::from(queue);
        let inside = queue < self.queues;
        inside.then(|| self.region.get_slice(at, ring_bytes(self.size)).ok()).flatten()
    }

    /// Begins to track a ring of `size` descriptors whose used index is `used`: what is left of an earlier server.
    ///
    /// # Errors
    /// The memory is for other rings.
    pub fn begin(&self, queue: u16, size: u16, used: u16) -> Result<Left, WireError> {
        let wrong = WireError::Malformed("in-flight memory of another ring");
        let Some(ring) = self.ring(queue).filter(|_| size <= self.size) else { return Err(wrong) };
        let word = |at: usize| ring.read_obj::<u16>(at).unwrap_or(0);
        if word(VERSION_AT) != VERSION {
            for at in 0..ring.len() / 8 {
                put(&ring, at * 8, 0u64);
            }
            put(&ring, VERSION_AT, VERSION);
            put(&ring, SIZE_AT, self.size);
            put(&ring, USED_AT, used);
            return Ok(Left::default());
        }
        if word(SIZE_AT) < size {
            return Err(wrong);
        }
        // The last one may have been given back without this having been noted.
        if word(USED_AT) != used {
            put(&ring, entry(word(LAST_HEAD_AT) % size), 0u8);
            fence(Ordering::SeqCst);
            put(&ring, USED_AT, used);
        }
        let taken = |head: &u16| ring.read_obj::<u8>(entry(*head)).is_ok_and(|flag| flag == 1);
        let counter = |head: u16| ring.read_obj::<u64>(entry(head) + COUNTER_AT).unwrap_or(0);
        let mut heads: Vec<(u64, u16)> = (0..size).filter(taken).map(|head| (counter(head), head)).collect();
        heads.sort_unstable();
        let next_counter = heads.last().map_or(0, |last| last.0.wrapping_add(1));
        Ok(Left { heads: heads.into_iter().map(|(_, head)| head).collect(), next_counter })
    }

    /// A head is taken from its ring.
    #[inline]
    pub fn take(&self, queue: u16, head: u16, counter: u64) {
        let Some(ring) = self.ring(queue) else { return };
        put(&ring, entry(head) + COUNTER_AT, counter);
        put(&ring, entry(head), 1u8);
        fence(Ordering::Release);
    }

    /// A head is about to be given back: called before the used index moves.
    #[inline]
    pub fn about_to_give(&self, queue: u16, head: u16) {
        let Some(ring) = self.ring(queue) else { return };
        put(&ring, LAST_HEAD_AT, head);
        fence(Ordering::SeqCst);
    }

    /// It has been given back: called after the used index moved to `used`.
    #[inline]
    pub fn gave(&self, queue: u16, head: u16, used: u16) {
        let Some(ring) = self.ring(queue) else { return };
        fence(Ordering::SeqCst);
        put(&ring, entry(head), 0u8);
        fence(Ordering::SeqCst);
        put(&ring, USED_AT, used);
    }
}

const fn entry(head: u16) -> usize {
    HEADER_BYTES + head as usize * ENTRY_BYTES
}

/// Every place is inside: sizes were checked when the memory was opened.
#[inline]
fn put<T: vm_memory::ByteValued>(ring: &VolatileSlice<'_, ()>, at: usize, value: T) {
    let _ = ring.write_obj(value, at);
}

fn file_size(fd: BorrowedFd<'_>) -> Result<u64, WireError> {
    let stat = rustix::fs::fstat(fd).map_err(WireError::Socket)?;
    Ok(u64::try_from(stat.st_size).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reopened(fd: &OwnedFd, len: u64) -> Inflight {
        Inflight::open(fd.try_clone().unwrap(), 0, len, 2, 8).unwrap()
    }

    #[test]
    fn the_next_server_finds_what_was_taken_in_its_order() {
        let (first, fd, len) = Inflight::create(2, 8).unwrap();
        assert_eq!(first.begin(1, 8, 5).unwrap(), Left::default());
        for (counter, head) in [(0, 3), (1, 7), (2, 0), (3, 5)] {
            first.take(1, head, counter);
        }
        first.about_to_give(1, 7);
        first.gave(1, 7, 6);
        drop(first);
        let second = reopened(&fd, len);
        assert_eq!(second.begin(1, 8, 6).unwrap(), Left { heads: vec![3, 0, 5], next_counter: 4 });
        assert_eq!(second.begin(0, 8, 0).unwrap(), Left::default());
    }

    #[test]
    fn what_was_given_back_at_the_last_moment_is_not_done_again() {
        let (first, fd, len) = Inflight::create(2, 8).unwrap();
        first.begin(0, 8, 0).unwrap();
        first.take(0, 2, 0);
        first.take(0, 4, 1);
        first.about_to_give(0, 4);
        // The used index moved to 1, and then the process was killed.
        assert_eq!(reopened(&fd, len).begin(0, 8, 1).unwrap().heads, [2]);
        // It was killed before: all of it is done again.
        let (first, fd, len) = Inflight::create(2, 8).unwrap();
        first.begin(0, 8, 0).unwrap();
        first.take(0, 4, 1);
        first.about_to_give(0, 4);
        assert_eq!(reopened(&fd, len).begin(0, 8, 0).unwrap().heads, [4]);
    }

    #[test]
    fn memory_that_is_not_there_is_refused() {
        let (_, fd, len) = Inflight::create(2, 8).unwrap();
        let open = |len, queues, size| Inflight::open(fd.try_clone().unwrap(), 0, len, queues, size);
        assert!(open(len + 4096, 2, 8).is_err());
        assert!(open(len, 300, 8).is_err());
        assert!(open(len, 2, 32).is_err());
        assert!(open(len, 0, 8).is_err());
        assert!(open(len, 2, 8).unwrap().begin(0, 16, 0).is_err());
        assert!(open(len, 2, 8).unwrap().begin(2, 8, 0).is_err());
    }
}

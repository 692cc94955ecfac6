//! Descriptor chains: from a head in a ring to pieces of memory, everything distrusted.
//!
//! `virtio-queue`'s own iterator ends silently at what is wrong, and cannot begin at a head that is to be done again
//! after a restart; here each violation has a name.

use thiserror::Error;
use virtio_bindings::virtio_ring::{VRING_DESC_F_INDIRECT, VRING_DESC_F_NEXT, VRING_DESC_F_WRITE};

use super::memory::Mapped;
use crate::memory::Segment;

/// Pieces of one chain at most: as many as the kernel takes at once, header and status besides.
const MOST_PIECES: usize = 1024 + 2;
const DESCRIPTOR_BYTES: u32 = 16;

/// What no driver does. The ring in which it was found is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Violation {
    /// A head or a next descriptor outside its table.
    #[error("descriptor {0} is outside its table")]
    Index(u16),
    /// A chain in a circle, or endless.
    #[error("a chain is longer than its table, or of more than 1026 pieces")]
    Endless,
    /// Memory that was not shared.
    #[error("{len} bytes at {address:#x} are not in shared memory")]
    Address {
        /// Guest-physical.
        address: u64,
        /// Bytes.
        len: u32,
    },
    /// A table within a table, beside a chain, or not in whole descriptors.
    #[error("an indirect table where none may be, or not in whole descriptors")]
    Indirect,
    /// Memory to read from behind memory to write to.
    #[error("memory to read from behind memory to write to")]
    Order,
    /// No place for the status.
    #[error("no memory to put a status in")]
    NoStatus,
    /// More than 4 GiB.
    #[error("a chain of more than 4 GiB")]
    TooLong,
    /// More heads than the ring has places.
    #[error("the ring says that it holds more than it can")]
    Overfull,
    /// The ring itself is not in shared memory.
    #[error("the ring is not in shared memory")]
    Ring,
}

/// A descriptor, as the client writes it.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Descriptor {
    address: u64,
    len: u32,
    flags: u16,
    next: u16,
}

impl Descriptor {
    const fn has(&self, flag: u32) -> bool {
        self.flags as u32 & flag != 0
    }
}

/// Descriptors among which a chain is.
#[derive(Debug, Clone, Copy)]
pub struct Table {
    /// The first, mapped with all the others.
    pub(super) first: *const u8,
    /// Descriptors in it.
    pub(super) size: u16,
}

impl Table {
    /// Has a descriptor brought near, so that walking need not wait for it to come from the client's processor.
    #[inline]
    pub fn fetch(self, index: u16) {
        if index < self.size {
            // SAFETY: inside the table.
            prefetch(unsafe { self.first.add(usize::from(index) * DESCRIPTOR_BYTES as usize) });
        }
    }

    /// The same for what the descriptor leads to: a table, or the header of a request.
    #[inline]
    pub fn fetch_behind(self, map: &Mapped, index: u16) {
        if index < self.size
            && let Some((place, _)) = map.piece(self.read(index).address, 1)
        {
            prefetch(place);
        }
    }

    /// The table that a descriptor leads to.
    fn within(map: &Mapped, descriptor: &Descriptor) -> Result<Self, Violation> {
        let Descriptor { address, len, .. } = *descriptor;
        if len == 0 || !len.is_multiple_of(DESCRIPTOR_BYTES) {
            return Err(Violation::Indirect);
        }
        let size = u16::try_from(len / DESCRIPTOR_BYTES).map_err(|_| Violation::Indirect)?;
        let first = map.at(address, len as usize).ok_or(Violation::Address { address, len })?;
        Ok(Self { first, size })
    }

    /// A copy of one that is in it. Whatever the client writes there meanwhile, the copy stays as it was read.
    #[inline]
    fn read(self, index: u16) -> Descriptor {
        debug_assert!(index < self.size);
        // SAFETY: inside the table, which is mapped.
        let place = unsafe { self.first.add(usize::from(index) * DESCRIPTOR_BYTES as usize) };
        let place = place.cast::<Descriptor>();
        let read = if place.is_aligned() {
            // SAFETY: as above, and aligned.
            unsafe { place.read_volatile() }
        } else {
            // SAFETY: as above; every pattern of bits is a descriptor.
            unsafe { place.read_unaligned() }
        };
        Descriptor {
            address: u64::from_le(read.address),
            len: u32::from_le(read.len),
            flags: u16::from_le(read.flags),
            next: u16::from_le(read.next),
        }
    }
}

/// The pieces of a chain.
#[derive(Debug, Default)]
pub struct Chain {
    /// All of them, those to read from first.
    pub pieces: Vec<Segment>,
    /// How many are to read from.
    pub readable: usize,
    /// Bytes to read from, and to write to.
    pub bytes: [u32; 2],
}

impl Chain {
    /// Takes in the chain that begins at `head`, in place of what was here.
    ///
    /// # Errors
    /// It is none.
    #[inline]
    pub fn walk(
        &mut self,
        map: &Mapped,
        table: Table,
        head: u16,
        indirect_allowed: bool,
    ) -> Result<(), Violation> {
        self.pieces.clear();
        self.readable = 0;
        self.bytes = [0; 2];
        let mut table = table;
        let mut indirect = false;
        let mut left = table.size;
        let mut next = head;
        loop {
            if next >= table.size {
                return Err(Violation::Index(next));
            }
            left = left.checked_sub(1).ok_or(Violation::Endless)?;
            let descriptor = table.read(next);
            if descriptor.has(VRING_DESC_F_INDIRECT) {
                if indirect || !indirect_allowed || descriptor.has(VRING_DESC_F_NEXT) {
                    return Err(Violation::Indirect);
                }
                table = Table::within(map, &descriptor)?;
                (indirect, left, next) = (true, table.size, 0);
                continue;
            }
            self.add(map, &descriptor)?;
            if !descriptor.has(VRING_DESC_F_NEXT) {
                return Ok(());
            }
            next = descriptor.next;
        }
    }

    #[inline]
    fn add(&mut self, map: &Mapped, descriptor: &Descriptor) -> Result<(), Violation> {
        let Descriptor { address, len, .. } = *descriptor;
        let writable = descriptor.has(VRING_DESC_F_WRITE);
        if !writable && self.bytes[1] > 0 {
            return Err(Violation::Order);
        }
        let sum = &mut self.bytes[usize::from(writable)];
        *sum = sum.checked_add(len).ok_or(Violation::TooLong)?;
        let (mut at, mut left) = (address, len as usize);
        // What lies across two regions is a piece of each.
        while left > 0 {
            let (base, there) = map.piece(at, left).ok_or(Violation::Address { address, len })?;
            // SAFETY: mapped as long as `map` is held, which the owner of the pieces does.
            self.push(unsafe { Segment::new(base, there) }, writable)?;
            left -= there;
            at = at.wrapping_add(there as u64);
        }
        Ok(())
    }

    #[inline]
    fn push(&mut self, piece: Segment, writable: bool) -> Result<(), Violation> {
        if self.pieces.len() == MOST_PIECES {
            return Err(Violation::Endless);
        }
        self.pieces.push(piece);
        if !writable {
            self.readable = self.pieces.len();
        }
        Ok(())
    }
}

/// Has a line of memory brought near.
#[inline]
fn prefetch(place: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(place.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;

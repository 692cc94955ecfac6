//! Descriptor chains: from a head in a ring to pieces of memory, everything distrusted.
//!
//! `virtio-queue`'s own iterator ends silently at what is wrong, and cannot begin at a head that is to be done again
//! after a restart; here each violation has a name.

use thiserror::Error;
use virtio_queue::desc::split::Descriptor;
use vm_memory::{Bytes, GuestAddress, GuestMemoryBackend, GuestMemoryRegion};

use super::memory::Map;
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

/// Where a chain is to be looked for.
#[derive(Debug, Clone, Copy)]
pub struct TableAt {
    /// Guest-physical address of the descriptor table.
    pub address: GuestAddress,
    /// Descriptors in it.
    pub size: u16,
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
    pub fn walk(
        &mut self,
        map: &Map,
        table: TableAt,
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
            let descriptor = read(map, table.address, next)?;
            if descriptor.refers_to_indirect_table() {
                if indirect || !indirect_allowed || descriptor.has_next() {
                    return Err(Violation::Indirect);
                }
                table = within(&descriptor)?;
                (indirect, left, next) = (true, table.size, 0);
                continue;
            }
            self.add(map, &descriptor)?;
            if !descriptor.has_next() {
                return Ok(());
            }
            next = descriptor.next();
        }
    }

    #[inline]
    fn add(&mut self, map: &Map, descriptor: &Descriptor) -> Result<(), Violation> {
        let writable = descriptor.is_write_only();
        let (address, len) = (descriptor.addr(), descriptor.len());
        if !writable && self.bytes[1] > 0 {
            return Err(Violation::Order);
        }
        let sum = &mut self.bytes[usize::from(writable)];
        *sum = sum.checked_add(len).ok_or(Violation::TooLong)?;
        if let Some(base) = mapped(map, address, len as usize) {
            // SAFETY: as below.
            return self.push(unsafe { Segment::new(base, len as usize) }, writable);
        }
        for slice in GuestMemoryBackend::get_slices(map, address, len as usize) {
            let slice = slice.map_err(|_| Violation::Address { address: address.0, len })?;
            // SAFETY: the slice is mapped as long as `map` is held, which whoever hands the pieces on does.
            self.push(unsafe { Segment::new(slice.ptr_guard_mut().as_ptr(), slice.len()) }, writable)?;
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

/// Where memory of one region is mapped, the whole of it. What lies across two regions is looked up piece by piece,
/// which takes several times as long and is rare.
#[inline]
fn mapped(map: &Map, address: GuestAddress, len: usize) -> Option<*mut u8> {
    let region = map.find_region(address).filter(|_| len > 0)?;
    let into = region.to_region_addr(address)?;
    let slice = region.get_slice(into, len).ok()?;
    Some(slice.ptr_guard_mut().as_ptr())
}

#[inline]
fn read(map: &Map, table: GuestAddress, index: u16) -> Result<Descriptor, Violation> {
    let wrong = Violation::Address { address: table.0, len: DESCRIPTOR_BYTES };
    let at =
        table.0.checked_add(u64::from(index) * u64::from(DESCRIPTOR_BYTES)).map(GuestAddress).ok_or(wrong)?;
    let place = mapped(map, at, DESCRIPTOR_BYTES as usize).map(<*mut u8>::cast::<Descriptor>);
    let Some(place) = place.filter(|place| place.is_aligned()) else {
        return map.read_obj(at).map_err(|_| wrong);
    };
    // SAFETY: 16 bytes that are mapped and aligned; whatever the client writes there meanwhile, this copy stays as it was read.
    Ok(unsafe { place.read_volatile() })
}

fn within(descriptor: &Descriptor) -> Result<TableAt, Violation> {
    let len = descriptor.len();
    if len == 0 || !len.is_multiple_of(DESCRIPTOR_BYTES) {
        return Err(Violation::Indirect);
    }
    let size = u16::try_from(len / DESCRIPTOR_BYTES).map_err(|_| Violation::Indirect)?;
    Ok(TableAt { address: descriptor.addr(), size })
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;

//! The memory that operations move data from and to.

#[cfg(feature = "network-targets")]
use std::fs::File;
use std::io;

use memmap2::MmapMut;
use virtbench_units::Random;

/// Direct I/O wants page-aligned memory.
const PAGE: usize = 4096;

/// One page-aligned buffer per slot, filled with random bytes.
///
/// Data written must neither compress nor repeat, or a storage system that compresses or
/// deduplicates would look faster than it is. Each buffer therefore holds random bytes of its own,
/// and [`Buffers::renew`] XORs them with a fresh 64-bit key before each write: no two blocks share
/// more than chance bytes, at a cost of memory bandwidth rather than of a generator.
pub(crate) struct Buffers {
    memory: MmapMut,
    /// What the memory is, where another process shares it.
    #[cfg(feature = "network-targets")]
    file: Option<File>,
    stride: usize,
    random: Random,
}

/// Buffers that another process can share.
#[cfg(feature = "network-targets")]
pub(crate) struct Shared<'a> {
    /// Where they are here.
    pub address: usize,
    /// Their length, in bytes.
    pub len: usize,
    /// The memory.
    pub file: &'a File,
}

impl Buffers {
    /// `slots` buffers of at least `bytes` each.
    pub(crate) fn new(slots: usize, bytes: usize, seed: u64) -> io::Result<Self> {
        let stride = bytes.next_multiple_of(PAGE);
        let mut memory = MmapMut::map_anon(stride * slots)?;
        let mut random = Random::new(seed);
        for word in memory.chunks_exact_mut(8) {
            word.copy_from_slice(&random.next_u64().to_ne_bytes());
        }
        Ok(Self {
            memory,
            #[cfg(feature = "network-targets")]
            file: None,
            stride,
            random,
        })
    }

    /// Moves the buffers into memory that another process can share. Their addresses change.
    #[cfg(feature = "network-targets")]
    pub(crate) fn share(&mut self) -> io::Result<Shared<'_>> {
        let file =
            File::from(rustix::fs::memfd_create("virtbench-buffers", rustix::fs::MemfdFlags::CLOEXEC)?);
        file.set_len(self.memory.len() as u64)?;
        // SAFETY: the file is anonymous and only given to the server under load, which may write
        // into buffers of reads that it was asked for; it is trusted not to do so otherwise.
        let mut memory = unsafe { MmapMut::map_mut(&file) }?;
        memory.copy_from_slice(&self.memory);
        self.memory = memory;
        let file = self.file.insert(file);
        Ok(Shared { address: self.memory.as_ptr() as usize, len: self.memory.len(), file })
    }

    /// The whole buffer of a slot.
    pub(crate) fn slot(&mut self, slot: usize) -> &mut [u8] {
        &mut self.memory[slot * self.stride..(slot + 1) * self.stride]
    }

    /// Gives the first `len` bytes of a slot's buffer contents that were never written before.
    #[inline]
    pub(crate) fn renew(&mut self, slot: usize, len: usize) {
        let key = self.random.next_u64().to_ne_bytes();
        let end = len.next_multiple_of(8).min(self.stride);
        for word in self.slot(slot)[..end].as_chunks_mut::<8>().0 {
            for (byte, key) in word.iter_mut().zip(key) {
                *byte ^= key;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_blocks_are_alike_in_any_sector() {
        let mut buffers = Buffers::new(4, 4096, 9).unwrap();
        let mut sectors = BTreeSet::new();
        for _ in 0..50 {
            for slot in 0..4 {
                buffers.renew(slot, 4096);
                for sector in buffers.slot(slot).chunks(512) {
                    assert!(sectors.insert(sector.to_vec()));
                }
            }
        }
    }

    #[test]
    fn contents_do_not_compress() {
        let mut buffers = Buffers::new(1, 65536, 9).unwrap();
        let mut counts = [0u32; 256];
        buffers.renew(0, 65536);
        buffers.slot(0).iter().for_each(|byte| counts[usize::from(*byte)] += 1);
        let entropy: f64 = counts
            .iter()
            .map(|count| f64::from(*count) / 65536.0)
            .map(|p| if p > 0.0 { -p * p.log2() } else { 0.0 })
            .sum();
        assert!(entropy > 7.99, "{entropy} bits a byte");
    }
}

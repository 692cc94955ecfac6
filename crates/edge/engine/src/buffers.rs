//! The memory that operations move data from and to.

#[cfg(feature = "network-targets")]
use std::fs::File;
use std::io;
use std::path::Path;

use memmap2::MmapMut;
use virtbench_record::IN_MEMORY;
use virtbench_units::Random;
use virtbench_workload::Content;

use crate::system::memory_name;

/// Direct I/O wants page-aligned memory.
const PAGE: usize = 4096;

/// A compressor finds its savings within every so many bytes.
const CHUNK: usize = 512;

/// How many different blocks the duplicates repeat.
const ORIGINALS: u64 = 16;

/// One page-aligned buffer per slot.
///
/// Data written must neither compress nor repeat unless asked to, or a storage system that compresses
/// or deduplicates would look faster than it is. A master block is therefore random once, and
/// [`Buffers::renew`] XORs it with a fresh 64-bit key before each write: no two blocks share more
/// than chance bytes, at a cost of memory bandwidth rather than of a generator. What a buffer held
/// before does not matter, for it may have been read from a hole.
///
/// Where a share is to be compressible, that share of each 512 bytes is zero instead. Where a share is
/// to repeat, so many writes, drawn at random, carry one of a few blocks known beforehand.
pub struct Buffers {
    memory: MmapMut,
    /// What the memory is, where another process shares it.
    #[cfg(feature = "network-targets")]
    file: Option<File>,
    stride: usize,
    random: Random,
    /// What every write is made from.
    master: Vec<u8>,
    /// Bytes at the start of each chunk that are random.
    random_bytes: usize,
    /// Share of writes that repeat a block, of 1.
    duplicates: f64,
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
    ///
    /// # Errors
    /// There is no memory for them.
    pub fn new(slots: usize, bytes: usize, seed: u64) -> io::Result<Self> {
        let stride = bytes.next_multiple_of(PAGE);
        let memory = MmapMut::map_anon(stride * slots)?;
        let mut random = Random::new(seed);
        let mut master = vec![0; stride];
        for word in master.as_chunks_mut::<8>().0 {
            *word = random.next_u64().to_ne_bytes();
        }
        Ok(Self {
            memory,
            #[cfg(feature = "network-targets")]
            file: None,
            stride,
            random,
            master,
            random_bytes: CHUNK,
            duplicates: 0.0,
        })
    }

    /// The same buffers with such contents.
    pub(crate) fn with_content(mut self, content: Content) -> Self {
        let random_percent = 100 - usize::from(content.compressible_percent.min(100));
        self.random_bytes = (CHUNK * random_percent / 100).next_multiple_of(8);
        for chunk in self.master.chunks_mut(CHUNK) {
            chunk[self.random_bytes..].fill(0);
        }
        self.duplicates = f64::from(content.duplicate_percent) / 100.0;
        self
    }

    /// The same buffers with these bytes over and over: in what is compressible, or in the whole where
    /// nothing else was asked for.
    pub(crate) fn with_pattern(mut self, pattern: &[u8], content: Content) -> Self {
        if pattern.is_empty() {
            return self;
        }
        if content == Content::default() {
            self.random_bytes = 0;
            self.master.iter_mut().zip(pattern.iter().cycle()).for_each(|(byte, new)| *byte = *new);
        }
        let random_bytes = self.random_bytes;
        for chunk in self.master.chunks_mut(CHUNK).filter(|_| random_bytes > 0) {
            let part = chunk[random_bytes..].iter_mut();
            part.zip(pattern.iter().cycle()).for_each(|(byte, new)| *byte = *new);
        }
        self
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
    pub fn slot(&mut self, slot: usize) -> &mut [u8] {
        &mut self.memory[slot * self.stride..(slot + 1) * self.stride]
    }

    /// Gives the first `len` bytes of a slot's buffer the contents of its next write.
    #[inline]
    pub fn renew(&mut self, slot: usize, len: usize) {
        let end = len.next_multiple_of(8).min(self.stride);
        let start = slot * self.stride;
        let block = &mut self.memory[start..start + end];
        let mut key = self.random.next_u64();
        if self.duplicates > 0.0 && self.random.unit() < self.duplicates {
            key = (key % ORIGINALS + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        if self.random_bytes == CHUNK {
            mix(block, &self.master[..end], key);
            return;
        }
        for (chunk, master) in block.chunks_mut(CHUNK).zip(self.master.chunks(CHUNK)) {
            let random_bytes = self.random_bytes.min(chunk.len());
            mix(&mut chunk[..random_bytes], &master[..random_bytes], key);
            let len = chunk.len();
            chunk[random_bytes..].copy_from_slice(&master[random_bytes..len]);
        }
    }
}

/// Writes every eight bytes of the master, XORed with the key.
#[inline]
fn mix(block: &mut [u8], master: &[u8], key: u64) {
    for (word, master) in block.as_chunks_mut::<8>().0.iter_mut().zip(master.as_chunks::<8>().0) {
        *word = (u64::from_ne_bytes(*master) ^ key).to_ne_bytes();
    }
}

/// What the reader of results is told whose load went to `path`, if that is on a file system in memory. Nothing if
/// it is not, or cannot be told.
#[must_use]
pub fn memory_note(path: &Path) -> Option<String> {
    let name = memory_name(path)?;
    Some(format!("{} is on {name}: {IN_MEMORY}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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

    /// A thousand blocks of 16 KiB, one after the other.
    fn written(compressible_percent: u8, duplicate_percent: u8) -> Vec<Vec<u8>> {
        let content = Content { compressible_percent, duplicate_percent };
        let mut buffers = Buffers::new(4, 16384, 9).unwrap().with_content(content);
        let mut write = |index: usize| {
            // As after a read from somewhere else: what a buffer held must not matter.
            buffers.slot(index % 4).fill(u8::try_from(index % 251).unwrap());
            buffers.renew(index % 4, 16384);
            buffers.slot(index % 4).to_vec()
        };
        (0..1000).map(&mut write).collect()
    }

    #[test]
    fn a_compressor_saves_what_was_asked_for() {
        for percent in [0u8, 25, 50, 80, 100] {
            let blocks = written(percent, 0);
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            for block in &blocks[..50] {
                std::io::Write::write_all(&mut encoder, block).unwrap();
            }
            let saved = 100.0 * (1.0 - encoder.finish().unwrap().len() as f64 / (50.0 * 16384.0));
            assert!((saved - f64::from(percent)).abs() < 4.0, "{percent} % asked for, {saved:.1} % saved");
        }
    }

    #[test]
    fn so_many_blocks_repeat_as_were_asked_for() {
        for percent in [0u8, 20, 60] {
            let blocks = written(0, percent);
            let distinct: BTreeSet<&Vec<u8>> = blocks.iter().collect();
            let repeated = 100.0 * (1.0 - distinct.len() as f64 / blocks.len() as f64);
            assert!(
                (repeated - f64::from(percent)).abs() < 5.0,
                "{percent} % asked for, {repeated:.1} % repeat"
            );
        }
    }

    #[test]
    fn both_at_once() {
        let blocks = written(50, 20);
        let distinct: BTreeSet<&Vec<u8>> = blocks.iter().collect();
        assert!((750..850).contains(&distinct.len()), "{}", distinct.len());
        let zeros = blocks.iter().flatten().filter(|byte| **byte == 0).count();
        assert!((0.49..0.53).contains(&(zeros as f64 / (1000.0 * 16384.0))), "{zeros}");
    }

    #[test]
    fn memory_is_told_from_a_disk() {
        let note = memory_note(Path::new("/dev/shm")).unwrap();
        assert_eq!(note, "/dev/shm is on tmpfs: this is memory, not a disk");
        assert_eq!(memory_note(Path::new(env!("CARGO_MANIFEST_DIR"))), None);
        assert_eq!(memory_note(Path::new("/nowhere at all")), None);
    }
}

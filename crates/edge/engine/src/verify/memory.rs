//! The words of a ledger: in memory, or in a file that is mapped.

use std::fs::File;
use std::io;
use std::sync::atomic::AtomicU32;

use memmap2::{MmapMut, MmapOptions, MmapRaw};

/// Bytes of a word.
pub(super) const WORD_BYTES: usize = size_of::<AtomicU32>();
/// Bytes before the words of the blocks: a page, which keeps them aligned.
pub(super) const HEADER_BYTES: usize = 4096;
/// Where the header holds the number of flushes issued, and the newest that has succeeded.
const ISSUED: usize = HEADER_BYTES / WORD_BYTES - 2;
const FLUSHED: usize = HEADER_BYTES / WORD_BYTES - 1;

/// A header, then a word of each kind for each block.
#[derive(Debug)]
pub(crate) struct Memory {
    map: MmapRaw,
    blocks: usize,
}

/// Bytes that so many blocks take, with the header.
pub(super) fn bytes_of(blocks: usize) -> usize {
    HEADER_BYTES + 3 * WORD_BYTES * blocks
}

impl Memory {
    /// Zeros that nobody else sees.
    pub(super) fn anonymous(blocks: usize) -> io::Result<Self> {
        MmapMut::map_anon(bytes_of(blocks)).map(|map| Self { map: map.into(), blocks })
    }

    /// A file of at least [`bytes_of`] this many blocks. What is stored is in the file at once, as far
    /// as other processes see, and stays there when this one is killed.
    pub(super) fn mapped(file: &File, blocks: usize) -> io::Result<Self> {
        let map = MmapRaw::map_raw(file)?;
        if map.len() < bytes_of(blocks) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { map, blocks })
    }

    /// A copy of such a file, as it is now.
    pub(super) fn copied(file: &File, blocks: usize) -> io::Result<Self> {
        // SAFETY: the map is private; a process that could cut the file short is kept out by a lock.
        let map = unsafe { MmapOptions::new().map_copy(file) }?;
        if map.len() < bytes_of(blocks) {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { map: map.into(), blocks })
    }

    fn words(&self) -> &[AtomicU32] {
        // SAFETY: the map is page-aligned, at least so long, and lives as long as `self`; every access
        // to it is atomic. A file that is cut short meanwhile is locked by the process that maps it.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), bytes_of(self.blocks) / WORD_BYTES) }
    }

    fn kind(&self, index: usize) -> &[AtomicU32] {
        let first = HEADER_BYTES / WORD_BYTES + index * self.blocks;
        &self.words()[first..first + self.blocks]
    }

    /// Flags and version of each block.
    pub(super) fn versions(&self) -> &[AtomicU32] {
        self.kind(0)
    }

    /// The newest version of each block that was stable when its version was acknowledged.
    pub(super) fn stable(&self) -> &[AtomicU32] {
        self.kind(1)
    }

    /// Flushes that had been issued when the block's version was acknowledged.
    pub(super) fn epochs(&self) -> &[AtomicU32] {
        self.kind(2)
    }

    /// Flushes issued.
    pub(super) fn issued(&self) -> &AtomicU32 {
        &self.words()[ISSUED]
    }

    /// The newest flush that has succeeded.
    pub(super) fn flushed(&self) -> &AtomicU32 {
        &self.words()[FLUSHED]
    }

    /// Writes what is mapped to its file.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.map.flush()
    }
}

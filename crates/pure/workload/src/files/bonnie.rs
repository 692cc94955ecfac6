//! Bonnie++'s tests (R. Coker; [Multi-VM 2010], section 5).

use serde::{Deserialize, Serialize};

use super::bounds::{FileLoadError, range};

/// How single characters reach the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CharacterIo {
    /// Through a buffer, as `putc` and `getc` do and Bonnie++ did when [Multi-VM 2010] was written.
    #[default]
    Buffered,
    /// A system call each, as Bonnie++ does from version 2.00 on.
    Syscall,
}

/// Bonnie++'s tests on one large file, and on many small ones.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BonnieSpec {
    /// Size of the large file, in bytes; zero for twice the memory of the machine that runs it, with less
    /// of which the cache is measured.
    pub file_bytes: u64,
    /// Size of a block, in bytes.
    pub block_bytes: u64,
    /// Whether the tests that go character by character are made, and how.
    pub characters: Option<CharacterIo>,
    /// Processes, here threads, that seek.
    pub seekers: u32,
    /// Seeks of all of them together.
    pub seeks: u32,
    /// How many of the blocks sought are written back, in percent.
    pub seek_write_percent: u8,
    /// Small files that are created, looked up and deleted; none where zero.
    pub small_files: u32,
    /// Size of a small file, in bytes.
    pub small_file_bytes: u64,
}

impl BonnieSpec {
    /// Bonnie++'s own numbers: blocks of 8 KiB, 8000 seeks of five seekers of which every tenth
    /// writes, 16 x 1024 empty files.
    #[must_use]
    pub fn new(file_bytes: u64) -> Self {
        Self {
            file_bytes,
            block_bytes: 8192,
            characters: Some(CharacterIo::Buffered),
            seekers: 5,
            seeks: 8000,
            seek_write_percent: 10,
            small_files: 16 * 1024,
            small_file_bytes: 0,
        }
    }

    pub(super) fn validate(&self) -> Result<(), FileLoadError> {
        range("bs", self.block_bytes, 256, 16 << 20)?;
        let file_bytes = if self.file_bytes == 0 { self.block_bytes } else { self.file_bytes };
        range("size", file_bytes, self.block_bytes, 1 << 50)?;
        range("threads", self.seekers.into(), 1, 256)?;
        range("seeks", self.seeks.into(), 0, 100_000_000)?;
        range("seek-writes (%)", self.seek_write_percent.into(), 0, 100)?;
        range("files", self.small_files.into(), 0, 10_000_000)?;
        range("file-size", self.small_file_bytes, 0, 1 << 30)
    }
}

//! Iozone's tests (W. Norcott, D. Capps; [Multi-VM 2010], section 5).

use serde::{Deserialize, Serialize};

use super::model::{FileLoadError, range};

/// A test, in the order in which Iozone makes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IozoneTest {
    /// A new file, from its start to its end.
    Write,
    /// The same over what is there.
    Rewrite,
    /// From the start to the end.
    Read,
    /// The same again.
    Reread,
    /// Every record once, in random order.
    RandomRead,
    /// The same, written.
    RandomWrite,
    /// From the end to the start.
    BackwardRead,
    /// One record in the middle, written over and over, as often as the file has records.
    RecordRewrite,
    /// One record of every so many, and round again until each was read.
    StridedRead,
}

impl IozoneTest {
    /// All of them, in order.
    pub const ALL: [Self; 9] = [
        Self::Write,
        Self::Rewrite,
        Self::Read,
        Self::Reread,
        Self::RandomRead,
        Self::RandomWrite,
        Self::BackwardRead,
        Self::RecordRewrite,
        Self::StridedRead,
    ];

    /// Its name on the command line and in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Rewrite => "rewrite",
            Self::Read => "read",
            Self::Reread => "reread",
            Self::RandomRead => "random-read",
            Self::RandomWrite => "random-write",
            Self::BackwardRead => "backward-read",
            Self::RecordRewrite => "record-rewrite",
            Self::StridedRead => "strided-read",
        }
    }

    /// Whether it writes.
    #[must_use]
    pub fn writes(self) -> bool {
        matches!(self, Self::Write | Self::Rewrite | Self::RandomWrite | Self::RecordRewrite)
    }
}

/// Iozone's tests on one file, over several record sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IozoneSpec {
    /// Size of the file, in bytes; zero for twice the memory of the machine that runs it, with less
    /// of which the cache is measured.
    pub file_bytes: u64,
    /// Sizes of a record, in bytes; all tests are made for each in turn.
    pub record_bytes: Vec<u64>,
    /// Which tests; the file is written first whatever is asked for.
    pub tests: Vec<IozoneTest>,
    /// A strided read reads one record of so many.
    pub stride_records: u64,
    /// Whether the time to flush a written file counts (Iozone's `-e`).
    pub include_flush: bool,
}

impl IozoneSpec {
    /// [Multi-VM 2010]'s: records of 64 and 128 KiB, all tests, a stride of 17 records as Iozone has it.
    #[must_use]
    pub fn new(file_bytes: u64) -> Self {
        Self {
            file_bytes,
            record_bytes: vec![64 << 10, 128 << 10],
            tests: IozoneTest::ALL.to_vec(),
            stride_records: 17,
            include_flush: true,
        }
    }

    pub(super) fn validate(&self) -> Result<(), FileLoadError> {
        range("bs (how many)", self.record_bytes.len() as u64, 1, 32)?;
        range("tests (how many)", self.tests.len() as u64, 1, IozoneTest::ALL.len() as u64)?;
        for &record_bytes in &self.record_bytes {
            range("bs", record_bytes, 512, 16 << 20)?;
            // A random test remembers the order of all records.
            let file_bytes = if self.file_bytes == 0 { record_bytes } else { self.file_bytes };
            range("size", file_bytes, record_bytes, record_bytes << 26)?;
        }
        range("stride (records)", self.stride_records, 1, 1 << 20)
    }
}

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

//! Iozone's tests (W. Norcott, D. Capps; [Multi-VM 2010], section 5).

use serde::{Deserialize, Serialize};

use super::bounds::{FileLoadError, range};

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

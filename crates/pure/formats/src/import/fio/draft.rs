//! A job while its options are read.

use virtbench_workload::{UringOptions, WriteSync};

use super::super::{Ends, SteadyMetric};
use super::mix::Mix;

/// The `ioengine` option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Blocking calls.
    Sync,
    /// io_uring itself.
    IoUring,
    /// Another asynchronous interface, for which io_uring stands in.
    Asynchronous,
    /// No I/O.
    Null,
    /// A client of NBD.
    Nbd,
    /// A client of virtio devices.
    Libblkio,
}

impl Engine {
    /// Reads the engine's name; nothing for one that does no block or file I/O.
    ///
    /// # Errors
    /// It does, in a way that this program has not.
    pub fn read(text: &str) -> Result<Option<Self>, String> {
        Ok(Some(match text {
            "sync" | "psync" | "vsync" | "pvsync" | "pvsync2" => Self::Sync,
            "io_uring" => Self::IoUring,
            "libaio" | "posixaio" | "solarisaio" | "windowsaio" => Self::Asynchronous,
            "null" => Self::Null,
            "nbd" => Self::Nbd,
            "libblkio" => Self::Libblkio,
            "mmap" | "splice" => {
                return Err(
                    "known are io_uring, libaio, posixaio, sync, psync, vsync, pvsync, pvsync2, null, nbd, \
                            libblkio"
                        .into(),
                );
            }
            _ => return Ok(None),
        }))
    }
}

/// Bytes, or a share of the target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// Bytes.
    Bytes(u64),
    /// A share of the target, in percent.
    Percent(u64),
}

/// The `steadystate` options.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Steady {
    /// Figure, whether its trend, limit, whether that is in percent.
    pub rule: Option<(SteadyMetric, bool, f64, bool)>,
    /// Window, in nanoseconds.
    pub window_ns: u64,
    /// Ramp before the window, in nanoseconds.
    pub ramp_ns: u64,
    /// How often the figure is taken, in nanoseconds.
    pub check_ns: Option<u64>,
}

/// The options of a job, with fio's defaults.
#[derive(Debug, Clone)]
#[allow(missing_docs, clippy::struct_excessive_bools)]
pub struct Draft {
    pub mix: Mix,
    pub depth: u32,
    pub clones: u32,
    pub size: Option<Quantity>,
    pub file_bytes: Option<u64>,
    pub offset: Quantity,
    pub offset_step: Quantity,
    pub io_size: Option<Quantity>,
    pub loops: u32,
    pub operations: Option<u64>,
    pub filename: Option<String>,
    /// How often the same file is named beside the first time.
    pub again: u32,
    pub offset_align: Option<u64>,
    pub pattern: Vec<u8>,
    pub filename_format: Option<String>,
    pub directory: Option<String>,
    pub address: Option<String>,
    pub driver: Option<String>,
    /// Whether there are zones, their size and what lies between them, in bytes.
    pub zones: (bool, Option<u64>, u64),
    pub time_ns: Option<u64>,
    pub time_based: bool,
    pub ramp_ns: u64,
    pub rate_iops: [Option<u64>; 3],
    pub rate_bytes: [Option<u64>; 3],
    pub least_bytes: [Option<u64>; 3],
    pub poisson: bool,
    pub offload: bool,
    pub direct: bool,
    pub keeps_cache: bool,
    /// `iodepth_batch` other than 1.
    pub batches: bool,
    /// `fill_device`.
    pub fills: bool,
    pub engine: Engine,
    /// Writes between two of fsync, and of fdatasync.
    pub flush_every: [Option<u32>; 2],
    pub flush_at_end: bool,
    pub write_sync: WriteSync,
    pub name: Option<String>,
    pub verify: bool,
    /// `do_verify`.
    pub checks: bool,
    pub seed: Option<u64>,
    pub stonewall: bool,
    pub wait_for: Option<String>,
    pub flow_weight: u32,
    pub flow_id: u64,
    pub flow_sleep_ns: u64,
    pub delay_ns: u64,
    pub exits_all: bool,
    pub exit_what: Ends,
    pub must_exist: bool,
    pub steady: Steady,
    pub uring: UringOptions,
    pub processors: Vec<u32>,
    pub processors_split: bool,
    pub compressible_percent: u64,
    pub duplicate_percent: u64,
}

impl Default for Draft {
    fn default() -> Self {
        Self {
            mix: Mix::default(),
            depth: 1,
            clones: 1,
            size: None,
            file_bytes: None,
            offset: Quantity::Bytes(0),
            offset_step: Quantity::Bytes(0),
            io_size: None,
            loops: 1,
            operations: None,
            filename: None,
            again: 0,
            offset_align: None,
            pattern: Vec::new(),
            filename_format: None,
            directory: None,
            address: None,
            driver: None,
            zones: (false, None, 0),
            time_ns: None,
            time_based: false,
            ramp_ns: 0,
            rate_iops: [None; 3],
            rate_bytes: [None; 3],
            least_bytes: [None; 3],
            poisson: false,
            offload: false,
            direct: false,
            keeps_cache: false,
            batches: false,
            fills: false,
            engine: Engine::Sync,
            flush_every: [None; 2],
            flush_at_end: false,
            write_sync: WriteSync::None,
            name: None,
            verify: false,
            checks: true,
            seed: None,
            stonewall: false,
            wait_for: None,
            flow_weight: 0,
            flow_id: 0,
            flow_sleep_ns: 0,
            delay_ns: 0,
            exits_all: false,
            exit_what: Ends::All,
            must_exist: false,
            steady: Steady::default(),
            uring: UringOptions::default(),
            processors: Vec::new(),
            processors_split: false,
            compressible_percent: 0,
            duplicate_percent: 0,
        }
    }
}

//! What is served: a TOML file, read into a value in which everything fits.

mod bounds;
mod build;
mod key_error;
mod nbd;
mod pools;
mod predictions;
mod scheduler;
mod spec;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_fence::ConfigError;
use virtbench_fence::catalogue::{self, Variant};
use virtbench_workload::FaultSpec;

pub use crate::frontend::nbd::Listen;
pub use bounds::{SHARE, SLOT_MS, SLOTS, within};
pub use build::{Built, LABEL_BYTES};
pub use nbd::{NbdTable, TlsTable};
pub use pools::Pools;
pub use predictions::{FastFound, PredictTable, Predictions, SlowFound};
pub use scheduler::served_variant;
pub use spec::{DeviceSpec, Emulated, EmulatedKind, Size};

/// A configuration file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The large device.
    pub slow: Option<DeviceTable>,
    /// The flash one.
    pub fast: Option<DeviceTable>,
    /// How the fast device caches the slow one, where both are given.
    #[serde(default)]
    pub cache: CacheTable,
    /// Who is served when.
    #[serde(default)]
    pub scheduler: SchedulerTable,
    /// What bounds the daemon.
    #[serde(default)]
    pub limits: Limits,
    /// The NBD server, if there is to be one.
    pub nbd: Option<NbdTable>,
    /// Where figures are to be had over HTTP: a loopback address with its port.
    pub metrics: Option<std::net::SocketAddr>,
    /// Where `fence resize` and `fence reslot` reach the daemon [default: the first disk's socket with `.control`].
    pub control: Option<PathBuf>,
    /// The virtual disks.
    #[serde(rename = "disk")]
    pub disks: Vec<DiskTable>,
    /// What the file has in place of `[slow]` and `[fast]`, if it describes several fences; [`Pools`] has each of them.
    #[serde(rename = "pool", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pools: BTreeMap<String, PoolTable>,
    /// Which pool of its file this fence is, if that has pools.
    #[serde(skip)]
    pub pool: Option<String>,
}

/// `[slow]` and `[fast]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceTable {
    /// What it is.
    pub device: DeviceSpec,
    /// I/Os that it has at once at most, where the scheduler does not decide that by batches.
    #[serde(default = "default_depth")]
    pub depth: u32,
    /// Faults that its I/Os suffer, to see how failures look: `eio=1%,short=0.1%,delay=5ms@1%,stall@0.01%,full=1%`.
    pub fault: Option<FaultSpec>,
}

impl DeviceTable {
    /// A device, otherwise as usual.
    #[must_use]
    pub const fn new(device: DeviceSpec) -> Self {
        Self { device, depth: default_depth(), fault: None }
    }
}

const fn default_depth() -> u32 {
    32
}

/// `[cache]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CacheTable {
    /// Blocks of 4 KiB of each partition that are kept free.
    pub free_target: u32,
    /// With so few blocks free, requests wait.
    pub low_watermark: u32,
    /// Blocks of 4 KiB of memory for fills, partial writes and write-backs of each partition; fills use half of them at most.
    pub scratch_blocks: u32,
    /// A folder in tmpfs: what was answered and not flushed is written down there, so that a daemon that takes over from
    /// one that was killed finds it. The next daemon of this cache must name the same.
    pub memory: PathBuf,
}

impl Default for CacheTable {
    fn default() -> Self {
        Self { free_target: 512, low_watermark: 16, scratch_blocks: 512, memory: "/dev/shm".into() }
    }
}

/// `[scheduler]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SchedulerTable {
    /// A row of the catalogue.
    #[serde(deserialize_with = "scheduler::read_variant", serialize_with = "scheduler::write_variant")]
    pub name: &'static Variant,
    /// Length of a time slot, milliseconds.
    pub slot_ms: f64,
    /// Slots of the rotation that belong to no disk yet.
    pub spare_slots: u32,
    /// I/Os in a batch at most.
    pub max_batch: u32,
    /// Predicted service times.
    pub predict: PredictTable,
}

impl Default for SchedulerTable {
    fn default() -> Self {
        Self {
            name: &catalogue::VIRTUAL_FENCE,
            slot_ms: catalogue::SLOT_MS,
            spare_slots: 0,
            max_batch: catalogue::MAX_BATCH,
            predict: PredictTable::default(),
        }
    }
}

/// `[limits]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Requests of one disk in flight at most.
    pub requests_per_disk: usize,
    /// The longest request that is handled in one piece.
    pub max_request: Size,
    /// How long to look for work before sleeping, microseconds, as long as what came last came within that time: about
    /// what a solid-state drive takes. Waking costs more than a request does.
    pub spin_us: u64,
    /// Once it serves, the daemon may ask of the kernel what serving takes and nothing else.
    pub confine: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests_per_disk: 1024, max_request: Size(1 << 20), spin_us: 100, confine: true }
    }
}

/// `[[disk]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskTable {
    /// Its name, and with the label of the device its identity.
    pub name: String,
    /// Its size, a multiple of 4 KiB.
    pub size: Size,
    /// The pool whose devices it lives on, in a file that has pools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Its part of the cache; none with one cache for all.
    pub cache: Option<Size>,
    /// So many bytes of consecutive writes go through the cache, those that follow past it to the slow device [default: all
    /// through the cache]. A sync of the slow device that fails then fails the client's flush, as without a cache.
    pub bypass: Option<Size>,
    /// Its time slots in a rotation.
    #[serde(default = "one")]
    pub slots: u32,
    /// Its share of both devices' time under `paced`, above 0 up to 1; equal parts where no disk says.
    pub share: Option<f64>,
    /// Under `token-bucket`: I/Os a second.
    pub iops: Option<u64>,
    /// Under `token-bucket`: bytes a second.
    pub bytes_per_s: Option<Size>,
    /// Under `mclock`: I/Os a second that it gets at least.
    pub reservation_iops: Option<u64>,
    /// Under `mclock`: I/Os a second that it gets at most.
    pub limit_iops: Option<u64>,
    /// Under `mclock` and `fair-queue`: its part of what is left.
    pub weight: Option<u64>,
    /// Requests a second that it has alone, as measured or promised; figures tell its deviation from that.
    pub alone_iops: Option<f64>,
    /// Its mean response time alone, in milliseconds.
    pub alone_response_ms: Option<f64>,
    /// Where it is served over vhost-user-blk.
    pub socket: Option<PathBuf>,
    /// Queues of that device.
    #[serde(default = "default_queues")]
    pub queues: u16,
    /// What it is called over NBD.
    pub export: Option<String>,
    /// A write is stable before it is answered, for clients that do not flush what must outlive a power failure.
    #[serde(default)]
    pub write_through: bool,
    /// Clients may not write.
    #[serde(default)]
    pub read_only: bool,
    /// Faults that its I/Os suffer on either device, and no other disk's.
    pub fault: Option<FaultSpec>,
}

impl DiskTable {
    /// A disk, otherwise as usual, still without a socket or an export.
    #[must_use]
    pub const fn new(name: String, size_bytes: u64) -> Self {
        Self {
            name,
            size: Size(size_bytes),
            pool: None,
            cache: None,
            bypass: None,
            slots: one(),
            share: None,
            iops: None,
            bytes_per_s: None,
            reservation_iops: None,
            limit_iops: None,
            weight: None,
            alone_iops: None,
            alone_response_ms: None,
            socket: None,
            queues: default_queues(),
            export: None,
            write_through: false,
            read_only: false,
            fault: None,
        }
    }
}

const fn one() -> u32 {
    1
}

const fn default_queues() -> u16 {
    4
}

/// `[pool.NAME]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub struct PoolTable {
    /// The large device.
    pub slow: Option<DeviceTable>,
    /// The flash one.
    pub fast: Option<DeviceTable>,
    /// What differs from the file's `[cache]`.
    pub cache: Option<CacheTable>,
    /// What differs from the file's `[scheduler]`.
    pub scheduler: Option<SchedulerTable>,
    /// The NBD server of its disks, if there is to be one.
    pub nbd: Option<NbdTable>,
    /// Where its figures are to be had over HTTP: a loopback address with its port.
    pub metrics: Option<std::net::SocketAddr>,
    /// Where `fence resize` and `fence reslot` reach its daemon [default: its first disk's socket with `.control`].
    pub control: Option<PathBuf>,
}

/// A configuration that cannot be used.
#[derive(Debug, Error)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum LoadError {
    /// The file cannot be read.
    #[error("{path}: {source}", path = path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// It is not TOML, or has an unknown key; with line and column.
    #[error("{path}: {source}", path = path.display())]
    Syntax {
        path: PathBuf,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
    /// A value does not fit with others.
    #[error("{path}: {message}", path = path.display())]
    Value {
        path: PathBuf,
        /// The key, what is wrong with it, and what to do.
        message: String,
    },
    /// The fence refuses the whole.
    #[error("{path}: {source}", path = path.display())]
    Fence { path: PathBuf, source: ConfigError },
}

impl Config {
    /// These disks under the usual scheduler, still without a device.
    #[must_use]
    pub fn new(disks: Vec<DiskTable>) -> Self {
        Self {
            slow: None,
            fast: None,
            cache: CacheTable::default(),
            scheduler: SchedulerTable::default(),
            limits: Limits::default(),
            nbd: None,
            metrics: None,
            control: None,
            disks,
            pools: BTreeMap::new(),
            pool: None,
        }
    }

    /// The file that [`load`](Self::load) reads.
    ///
    /// # Errors
    /// A path is not UTF-8.
    pub fn text(&self) -> Result<String, toml::ser::Error> {
        toml::to_string(self)
    }

    /// The configuration with what was measured in place of what it says itself, if it names a file of that. `label` is
    /// the identity of the device that virtual disks live on.
    ///
    /// # Errors
    /// The file cannot be used, or is of another fence.
    pub fn calibrated(&self, label: &[u8; 16]) -> Result<Self, LoadError> {
        let mut config = self.clone();
        let Some(path) = &self.scheduler.predict.file else { return Ok(config) };
        let wrong = |message| LoadError::Value { path: path.clone(), message };
        let found = Predictions::read(path).map_err(wrong)?;
        if found.label != *label {
            return Err(wrong(
                "it was measured on other devices: measure these with `virtbench fence calibrate`".into(),
            ));
        }
        found.apply(&mut config.scheduler.predict);
        config.predictions_within_bounds().map_err(|number| wrong(number.to_string()))?;
        Ok(config)
    }
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;

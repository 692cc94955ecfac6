//! What goes wrong with devices and caches, for the daemon's operator.

use virtbench_fence::cache::CacheCounts;
use virtbench_fence::{Device, DeviceIo, DeviceOp, IoError};

use crate::journal::Journal;
use crate::metrics::Metrics;

/// Which states of a partition are told when they change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stands {
    failing: bool,
    read_only: bool,
}

/// Writes lines, few of them whatever devices do.
#[derive(Debug)]
pub(super) struct Notes {
    devices: Journal,
    caches: Journal,
    stood: Vec<Stands>,
}

impl Default for Notes {
    fn default() -> Self {
        let [devices, caches] = ["a device fails", "cache"].map(|about| Journal::new(about.into()));
        Self { devices, caches, stood: Vec::new() }
    }
}

impl Notes {
    /// An I/O of a device has failed.
    pub(super) fn failed(&self, io: &DeviceIo, error: IoError, figures: &Metrics) {
        let device = match io.device {
            Device::Slow => "slow",
            Device::Fast => "fast",
        };
        let disk = figures.disk_name(io.disk.index());
        let DeviceIo { offset_bytes, len_bytes, .. } = io;
        let what = match io.op {
            DeviceOp::Flush => "a flush".to_owned(),
            DeviceOp::Read => format!("a read of {len_bytes} bytes at {offset_bytes}"),
            DeviceOp::Write => format!("a write of {len_bytes} bytes at {offset_bytes}"),
            DeviceOp::Discard => format!("a discard of {len_bytes} bytes at {offset_bytes}"),
        };
        let why = match error {
            IoError::Device(code) => std::io::Error::from_raw_os_error(code).to_string(),
            error => error.to_string(),
        };
        self.devices.note(format_args!("[{device}], {what} for disk {disk}: {why}"));
    }

    /// How the partitions of the cache stand; what has changed is told.
    pub(super) fn caches(&mut self, counts: impl Iterator<Item = CacheCounts>, figures: &Metrics) {
        for (place, counts) in counts.enumerate().filter(|(_, counts)| !counts.sealed) {
            let now = Stands { failing: counts.failing, read_only: counts.read_only };
            if self.stood.len() <= place {
                self.stood.resize(place + 1, Stands::default());
            }
            let before = std::mem::replace(&mut self.stood[place], now);
            if now == before {
                continue;
            }
            let whose = match figures.caches() {
                1 => "the cache of all disks".to_owned(),
                _ => format!("the cache of disk {}", figures.disk_name(place)),
            };
            let says = match now {
                Stands { read_only: true, failing: true } => {
                    "refuses writes and flushes until a device that fails works again"
                }
                Stands { read_only: true, failing: false } => {
                    "refuses writes and flushes until the daemon is started again: after a failed flush of the fast device \
                     nobody knows what that has kept"
                }
                Stands { read_only: false, failing: true } => {
                    "keeps what a device that fails does not take, and tries it again; writes wait once there is no room"
                }
                Stands { read_only: false, failing: false } => "works again: nothing of it was lost",
            };
            self.caches.note(format_args!("{whose} {says} ({} failures so far)", counts.errors));
        }
    }
}

//! Models of the devices: how long one command takes, given those before it.
//!
//! A device serves one command at a time, as the prototype's did ([VirtualFence 2013], section 6.3: a batch is
//! handed over and waited for). What it holds beyond that one waits in a [`Queue`]; a [`Station`] is the two
//! together. The simulator asks it in virtual time, the daemon's emulated devices in real time.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_fence::DeviceOp;
use virtbench_units::Random;

/// A disk model that describes no disk.
#[derive(Debug, Error, Clone, PartialEq)]
#[error("{option} {value}: {wants}")]
pub struct DiskError {
    option: &'static str,
    value: f64,
    wants: &'static str,
}

/// Refuses what is not a number above zero.
fn positive(option: &'static str, value: f64, wants: &'static str) -> Result<(), DiskError> {
    if value.is_finite() && value > 0.0 { Ok(()) } else { Err(DiskError { option, value, wants }) }
}

/// Refuses what is not a number from zero up.
fn not_negative(option: &'static str, value: f64, wants: &'static str) -> Result<(), DiskError> {
    if value.is_finite() && value >= 0.0 { Ok(()) } else { Err(DiskError { option, value, wants }) }
}

/// Milliseconds, which are not negative, as whole nanoseconds; what is not a sensible time saturates.
#[inline]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
fn ms_to_ns(milliseconds: f64) -> u64 {
    (milliseconds * 1e6 + 0.5) as u64
}

/// Seek time over distance: `settle + root * sqrt(f) + linear * f` milliseconds for a move over the
/// fraction `f` of the full stroke. No move takes no seek time of its own beyond the settling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeekCurve {
    /// Milliseconds that every seek takes.
    pub settle_ms: f64,
    /// Milliseconds at full stroke that grow with the root of the distance (acceleration).
    pub root_ms: f64,
    /// Milliseconds at full stroke that grow with the distance (coasting).
    pub linear_ms: f64,
}

impl SeekCurve {
    /// Milliseconds for a move over the fraction `f` of the full stroke.
    #[inline]
    #[must_use]
    pub fn ms(&self, f: f64) -> f64 {
        self.settle_ms + self.root_ms * f.sqrt() + self.linear_ms * f
    }

    /// The mean over two independent uniform positions, milliseconds. For x, y uniform on [0, 1],
    /// E sqrt|x-y| = 8/15 and E|x-y| = 1/3.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        self.settle_ms + self.root_ms * 8.0 / 15.0 + self.linear_ms / 3.0
    }
}

/// A hard disk's parameters. The default is the drive of [VirtualFence 2013], section 4.4 (160 GB, 7200 RPM, mean
/// seek 11 ms, full stroke 22 ms); its media rate is not given there and is that of drives of its kind.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HddModel {
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// Revolutions a minute.
    pub rpm: f64,
    /// Seek time over distance.
    pub seek: SeekCurve,
    /// Media rate in bytes a second.
    pub bytes_per_s: f64,
}

impl Default for HddModel {
    fn default() -> Self {
        Self {
            capacity_bytes: 160_000_000_000,
            rpm: 7200.0,
            seek: SeekCurve { settle_ms: 1.0, root_ms: 15.0, linear_ms: 6.0 },
            bytes_per_s: 80e6,
        }
    }
}

impl HddModel {
    /// # Errors
    /// A parameter that no disk has.
    pub fn check(&self) -> Result<(), DiskError> {
        positive("hdd capacity_bytes", self.capacity_bytes as f64, "a disk holds something")?;
        positive("`rpm`", self.rpm, "revolutions a minute lie above zero, such as 7200")?;
        positive("hdd bytes_per_s", self.bytes_per_s, "a media rate lies above zero, such as 80000000")?;
        not_negative("hdd seek.settle_ms", self.seek.settle_ms, "times are not negative")?;
        not_negative("hdd seek.root_ms", self.seek.root_ms, "times are not negative")?;
        not_negative("hdd seek.linear_ms", self.seek.linear_ms, "times are not negative")
    }

    /// Random accesses of 4 KiB a second of each of so many disks that have equal parts of it; 1 at least.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
    pub fn random_iops(&self, disks: usize) -> u32 {
        let access_ms = self.seek.mean_ms() + self.revolution_ms() / 2.0 + 4096.0 / self.bytes_per_s * 1e3;
        ((1e3 / access_ms / disks.max(1) as f64) as u32).max(1)
    }

    /// One revolution, milliseconds.
    #[must_use]
    pub fn revolution_ms(&self) -> f64 {
        60e3 / self.rpm
    }
}

/// A disk with its head somewhere.
#[derive(Debug, Clone)]
pub struct Hdd {
    model: HddModel,
    /// Where the last transfer ended, in bytes.
    head: u64,
    random: Random,
}

impl Hdd {
    /// A disk whose head rests at the outer edge.
    #[must_use]
    pub fn new(model: HddModel, seed: u64) -> Self {
        Self { model, head: 0, random: Random::new(seed) }
    }

    /// Where the last transfer ended, in bytes.
    #[must_use]
    pub fn head(&self) -> u64 {
        self.head
    }

    /// How long `len` bytes at `offset` take, in nanoseconds, and moves the head behind them.
    ///
    /// What begins where the last transfer ended streams: neither seek nor rotation, as the track
    /// buffer gives. Else the rotational delay is uniform over a revolution, independent of
    /// everything before: requests come from clients at times that know nothing of the platter.
    #[inline]
    pub fn service_ns(&mut self, offset: u64, len: u64) -> u64 {
        let mut ms = len as f64 / self.model.bytes_per_s * 1e3;
        if offset != self.head {
            let f = offset.abs_diff(self.head) as f64 / self.model.capacity_bytes as f64;
            ms += self.model.seek.ms(f.min(1.0)) + self.random.unit() * self.model.revolution_ms();
        }
        self.head = offset.saturating_add(len);
        ms_to_ns(ms)
    }
}

/// A command as a device sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command<T> {
    /// Given back on completion.
    pub tag: T,
    /// First byte on the device.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
    /// What it does.
    pub op: DeviceOp,
}

/// In which order a device serves what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they came.
    Arrival,
    /// Upwards by address from the head, then again from the lowest (C-LOOK): "the disk scheduling
    /// algorithm includes some form of scanning" ([VirtualFence 2013], section 6.3).
    Scan,
}

/// Commands that wait for a device. The caller bounds it; it is searched linearly.
#[derive(Debug, Clone)]
pub struct Queue<T> {
    order: Order,
    waiting: VecDeque<Command<T>>,
}

impl<T> Queue<T> {
    /// An empty queue.
    #[must_use]
    pub fn new(order: Order) -> Self {
        Self { order, waiting: VecDeque::with_capacity(64) }
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether none waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Adds one at the end.
    #[inline]
    pub fn push(&mut self, command: Command<T>) {
        self.waiting.push_back(command);
    }

    /// Takes the one to serve next, the head being at `head`.
    #[inline]
    pub fn pop(&mut self, head: u64) -> Option<Command<T>> {
        if self.order == Order::Arrival || self.waiting.len() <= 1 {
            return self.waiting.pop_front();
        }
        // Those ahead of the head come first, each half by address; equal addresses as they came.
        let key = |(_, command): &(usize, &Command<T>)| (command.offset < head, command.offset);
        let (next, _) = self.waiting.iter().enumerate().min_by_key(key)?;
        self.waiting.remove(next)
    }
}

/// The block that an operation's fixed time includes.
const PAGE_BYTES: u64 = 4096;

/// Which description of [VirtualFence 2013]'s drive is followed; they do not agree with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SsdProfile {
    /// Its data sheet and the erasures measured (section 4.4): 20,000 random reads and 5,000 random
    /// writes a second, erasures of 3.5 to 4 ms.
    Spec,
    /// The batches measured (section 6.3): 19.4 ms for 49 operations, 83 % of them without a stall.
    PaperFit,
}

/// A profile that does not exist.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no profile of a solid-state drive: write spec or paper-fit")]
pub struct ProfileError(String);

impl SsdProfile {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Spec, Self::PaperFit];

    /// Its name in options and configurations.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::PaperFit => "paper-fit",
        }
    }
}

impl std::str::FromStr for SsdProfile {
    type Err = ProfileError;

    fn from_str(text: &str) -> Result<Self, ProfileError> {
        let found = Self::ALL.into_iter().find(|profile| profile.name() == text);
        found.ok_or_else(|| ProfileError(text.to_owned()))
    }
}

/// A solid-state drive's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdModel {
    /// Capacity in bytes.
    pub capacity_bytes: u64,
    /// A random read of 4 KiB, microseconds.
    pub read_us: f64,
    /// A random write of 4 KiB without an erasure, microseconds.
    pub write_us: f64,
    /// What goes beyond 4 KiB is read at this rate, bytes a second.
    pub read_bytes_per_s: f64,
    /// What goes beyond 4 KiB is written at this rate, bytes a second.
    pub write_bytes_per_s: f64,
    /// Written pages of 4 KiB between erasures.
    pub pages_per_erase: u64,
    /// The shortest erasure with its garbage collection, milliseconds.
    pub erase_low_ms: f64,
    /// The longest, milliseconds.
    pub erase_high_ms: f64,
}

impl SsdModel {
    /// The drive in a profile. Bandwidths are not in the paper: those of SATA drives of its time.
    #[must_use]
    pub fn new(profile: SsdProfile) -> Self {
        let both = Self {
            capacity_bytes: 60_000_000_000,
            read_us: 50.0,
            write_us: 0.0,
            read_bytes_per_s: 250e6,
            write_bytes_per_s: 200e6,
            pages_per_erase: 64,
            erase_low_ms: 3.5,
            erase_high_ms: 4.0,
        };
        match profile {
            // An erase block of 64 pages costs 3.75 ms / 64 = 58.6 us a page; the rest of the 200 us
            // of a write at 5,000 a second is the write itself.
            SsdProfile::Spec => Self { write_us: 200.0 - 3750.0 / 64.0, ..both },
            // 19.4 ms / 49 = 396 us. With 24.5 writes a batch, one stall in 128 writes leaves 81 % of
            // the batches without.
            SsdProfile::PaperFit => Self { read_us: 396.0, write_us: 396.0, pages_per_erase: 128, ..both },
        }
    }

    /// # Errors
    /// A parameter that no drive has.
    pub fn check(&self) -> Result<(), DiskError> {
        positive("ssd capacity_bytes", self.capacity_bytes as f64, "a drive holds something")?;
        positive(
            "ssd pages_per_erase",
            self.pages_per_erase as f64,
            "at least one page is written between erasures",
        )?;
        positive("ssd read_us", self.read_us, "a read takes time")?;
        positive("ssd write_us", self.write_us, "a write takes time")?;
        positive("ssd read_bytes_per_s", self.read_bytes_per_s, "a rate lies above zero")?;
        positive("ssd write_bytes_per_s", self.write_bytes_per_s, "a rate lies above zero")?;
        not_negative("ssd erase_low_ms", self.erase_low_ms, "times are not negative")?;
        not_negative(
            "ssd erase_high_ms - erase_low_ms",
            self.erase_high_ms - self.erase_low_ms,
            "the longest erasure is not shorter than the shortest",
        )
    }

    /// The mean time between the starts of 4 KiB writes, one after the other, microseconds.
    #[must_use]
    pub fn mean_write_us(&self) -> f64 {
        let erase_us = 1e3 * f64::midpoint(self.erase_low_ms, self.erase_high_ms);
        self.write_us + erase_us / self.pages_per_erase as f64
    }
}

/// A drive with a partly filled erase block.
#[derive(Debug, Clone)]
pub struct Ssd {
    model: SsdModel,
    /// Pages that may be written before the next erasure.
    pages_left: u64,
    random: Random,
}

impl Ssd {
    /// A drive that has been in use: its erase block is filled to a random degree.
    #[must_use]
    pub fn new(model: SsdModel, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let pages_left = 1 + random.below(model.pages_per_erase.max(1));
        Self { model, pages_left, random }
    }

    /// How long an operation takes, in nanoseconds. A write that fills the erase block stalls for an
    /// erasure, and so does whatever waits behind it.
    #[inline]
    pub fn service_ns(&mut self, write: bool, len: u64) -> u64 {
        let more_bytes = len.saturating_sub(PAGE_BYTES) as f64;
        if !write {
            return ms_to_ns(self.model.read_us / 1e3 + more_bytes / self.model.read_bytes_per_s * 1e3);
        }
        let mut ms = self.model.write_us / 1e3 + more_bytes / self.model.write_bytes_per_s * 1e3;
        let mut pages = len.div_ceil(PAGE_BYTES).max(1);
        while pages >= self.pages_left {
            pages -= self.pages_left;
            self.pages_left = self.model.pages_per_erase;
            ms += self.model.erase_low_ms
                + self.random.unit() * (self.model.erase_high_ms - self.model.erase_low_ms);
        }
        self.pages_left -= pages;
        ms_to_ns(ms)
    }
}

/// Time of a flush or discard, nanoseconds. The models' writes are on the medium when they complete,
/// so that nothing is left to flush; it costs the command alone.
pub const CONTROL_NS: u64 = 1_000;

/// Which model serves.
#[derive(Debug, Clone)]
pub enum Model {
    /// A hard disk.
    Hdd(Hdd),
    /// A solid-state drive.
    Ssd(Ssd),
}

/// A device that serves one command at a time. It knows no clock: it says how long a command takes, and is told when
/// that time is over.
#[derive(Debug, Clone)]
pub struct Station<T> {
    model: Model,
    queue: Queue<T>,
    /// The tag of the command that is served.
    serving: Option<T>,
    busy_ns: u64,
    /// Every command takes [`CONTROL_NS`].
    pub(crate) hurried: bool,
}

impl<T: Copy> Station<T> {
    /// An idle device.
    #[must_use]
    pub fn new(model: Model, order: Order) -> Self {
        Self { model, queue: Queue::new(order), serving: None, busy_ns: 0, hurried: false }
    }

    /// Nanoseconds of service begun so far.
    #[must_use]
    pub const fn busy_ns(&self) -> u64 {
        self.busy_ns
    }

    /// What it does counts from now.
    pub(crate) fn begin_time(&mut self) {
        self.hurried = false;
        self.busy_ns = 0;
    }

    /// Takes a command in. Gives the time after which it is done, in nanoseconds, if the device was idle.
    #[inline]
    pub fn take_in(&mut self, command: Command<T>) -> Option<u64> {
        self.queue.push(command);
        if self.serving.is_some() { None } else { self.begin() }
    }

    /// The command served is done: its tag, and the time after which the next one is, in nanoseconds.
    #[inline]
    pub fn done(&mut self) -> Option<(T, Option<u64>)> {
        let tag = self.serving.take()?;
        Some((tag, self.begin()))
    }

    #[inline]
    fn begin(&mut self) -> Option<u64> {
        let head = match &self.model {
            Model::Hdd(hdd) => hdd.head(),
            Model::Ssd(_) => 0,
        };
        let Command { tag, op, offset, len } = self.queue.pop(head)?;
        self.serving = Some(tag);
        let moves = matches!(op, DeviceOp::Read | DeviceOp::Write);
        let ns = match &mut self.model {
            _ if !moves || self.hurried => CONTROL_NS,
            Model::Hdd(hdd) => hdd.service_ns(offset, u64::from(len)),
            Model::Ssd(ssd) => ssd.service_ns(op == DeviceOp::Write, u64::from(len)),
        };
        self.busy_ns += ns;
        Some(ns)
    }
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod curves_tests;

#[cfg(test)]
mod tests {
    use super::*;

    fn served(order: Order, head: u64, offsets: &[u64]) -> Vec<u64> {
        let mut queue = Queue::new(order);
        for offset in offsets {
            queue.push(Command { tag: (), offset: *offset, len: 1, op: DeviceOp::Read });
        }
        let mut head = head;
        std::iter::from_fn(|| {
            let command = queue.pop(head)?;
            head = command.offset + 1;
            Some(command.offset)
        })
        .collect()
    }

    #[test]
    fn a_scan_goes_up_and_begins_again_below() {
        assert_eq!(served(Order::Scan, 50, &[10, 60, 55, 90, 20]), [55, 60, 90, 10, 20]);
    }

    #[test]
    fn arrival_order_is_kept() {
        assert_eq!(served(Order::Arrival, 50, &[10, 60, 55]), [10, 60, 55]);
    }
}

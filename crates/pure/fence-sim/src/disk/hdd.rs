//! A hard disk: seek, rotation, transfer.

use serde::{Deserialize, Serialize};
use virtbench_units::Random;

use super::{DiskError, ms_to_ns, not_negative, positive};

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

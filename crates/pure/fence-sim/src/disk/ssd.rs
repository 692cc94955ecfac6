//! A solid-state drive: a time an operation, bandwidth beyond the first block, and erasures.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_units::Random;

use super::{DiskError, ms_to_ns, not_negative, positive};

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

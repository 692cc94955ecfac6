//! What all experiments have in common.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use virtbench_fence_sim::Span;
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::disk::{DiskError, HddModel, SsdModel, SsdProfile};

/// The shortest span that is measured, seconds: many rotations of slots.
const SHORTEST_S: f64 = 5.0;

/// Which machines run while saturation is sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Saturating {
    /// One, alone.
    One,
    /// All at once.
    All,
}

impl std::str::FromStr for Saturating {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "one" => Ok(Self::One),
            "all" => Ok(Self::All),
            _ => Err(format!("{text:?} is neither one nor all")),
        }
    }
}

/// What all experiments have in common; each is an option of the command.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The hard disk.
    pub hdd: HddModel,
    /// The solid-state drive.
    pub ssd: SsdModel,
    /// Files of each virtual disk together, bytes. Small, so that a cache is soon warm: uniform popularity
    /// makes the hit rate a matter of the share that is cached.
    pub file_set_bytes: u64,
    /// Size of each virtual disk in bytes; as large as both devices allow where it is not given.
    pub disk_bytes: Option<u64>,
    /// Bytes from the start of one virtual disk to that of the next; side by side where it is not given.
    pub stride_bytes: Option<u64>,
    /// Size of the accesses that the predictors are calibrated with, bytes.
    pub calibration_bytes: u64,
    /// Share of reads that the guests' page caches answer.
    pub page_cache_hits: f64,
    /// The longest span that a run is measured for, seconds of virtual time.
    pub measure_s: f64,
    /// A run is shorter where the system at saturation did so many accesses sooner.
    pub accesses: u32,
    /// Warm-up before the span, as a share of it; two seconds at least.
    pub warm_up: f64,
    /// Runs of each experiment, each with a seed of its own.
    pub replications: u32,
    /// Which machines run while saturation is sought.
    pub saturating: Saturating,
    /// Of every random choice.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hdd: HddModel::default(),
            ssd: SsdModel::new(SsdProfile::Spec),
            file_set_bytes: 32 << 20,
            disk_bytes: None,
            stride_bytes: None,
            calibration_bytes: 4096,
            page_cache_hits: 0.0,
            measure_s: 200.0,
            accesses: 20_000,
            warm_up: 0.1,
            replications: 5,
            saturating: Saturating::One,
            seed: 1,
        }
    }
}

/// Settings that no world has.
#[derive(Debug, Error, PartialEq)]
pub enum SettingsError {
    /// A device.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Anything else.
    #[error("{0} {1}: {2}")]
    Range(&'static str, f64, &'static str),
}

impl Settings {
    /// # Errors
    /// A value outside its range, by the option's name.
    pub fn check(&self) -> Result<(), SettingsError> {
        self.hdd.check()?;
        self.ssd.check()?;
        let within = |name, value: f64, least: f64, most: f64, wants| {
            let fits = (least..=most).contains(&value);
            if fits { Ok(()) } else { Err(SettingsError::Range(name, value, wants)) }
        };
        within(
            "file_set_bytes",
            self.file_set_bytes as f64,
            1e6,
            1e10,
            "1 MB to 10 GB of files a virtual disk",
        )?;
        within(
            "calibration_bytes",
            self.calibration_bytes as f64,
            512.0,
            1e6,
            "512 to 1000000 bytes an access",
        )?;
        within("page_cache_hits", self.page_cache_hits, 0.0, 0.99, "a share from 0 to 0.99 of reads")?;
        within("`measure_s`", self.measure_s, 1.0, 1e6, "1 s to 1000000 s of virtual time are measured")?;
        within("warm_up", self.warm_up, 0.0, 10.0, "0 to 10 times the measured span")?;
        within("accesses", f64::from(self.accesses), 100.0, 1e9, "100 to 1000000000 accesses bound a run")?;
        within(
            "`replications`",
            f64::from(self.replications),
            1.0,
            1000.0,
            "1 to 1000 runs make an experiment",
        )
    }

    /// The span of a run of a system that does `per_second` accesses a second at saturation.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
    pub fn span(&self, per_second: f64) -> Span {
        let measure_s = self.measure_s.min(f64::from(self.accesses) / per_second.max(1e-9)).max(SHORTEST_S);
        let warm_up_s = (measure_s * self.warm_up).max(2.0);
        Span { warm_up_ns: (warm_up_s * 1e9) as u64, measure_ns: (measure_s * 1e9) as u64 }
    }

    /// Files on a virtual disk.
    #[must_use]
    pub fn files(&self, personality: Personality) -> u32 {
        u32::try_from(self.file_set_bytes / personality.mean_file_bytes()).unwrap_or(u32::MAX)
    }
}

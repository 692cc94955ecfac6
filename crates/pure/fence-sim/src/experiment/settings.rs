//! What all experiments have in common.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::disk::{DiskError, HddModel, SsdModel, SsdProfile};
use crate::world::Span;

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
    /// Files on each virtual disk.
    pub files: u32,
    /// Size of the accesses that the predictors are calibrated with, bytes.
    pub calibration_bytes: u64,
    /// Share of reads that the guests' page caches answer.
    pub page_cache_hits: f64,
    /// Measured span of a run, seconds of virtual time.
    pub measure_s: f64,
    /// Warm-up before it, seconds.
    pub warm_up_s: f64,
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
            ssd: SsdModel::of(SsdProfile::Spec),
            files: 2000,
            calibration_bytes: 4096,
            page_cache_hits: 0.0,
            measure_s: 200.0,
            warm_up_s: 20.0,
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
        within("files", f64::from(self.files), 1.0, 1e6, "1 to 1000000 files fit a virtual disk")?;
        within(
            "calibration_bytes",
            self.calibration_bytes as f64,
            512.0,
            1e6,
            "512 to 1000000 bytes an access",
        )?;
        within("page_cache_hits", self.page_cache_hits, 0.0, 0.99, "a share from 0 to 0.99 of reads")?;
        within("--duration", self.measure_s, 1.0, 1e6, "1 s to 1000000 s of virtual time are measured")?;
        within("warm_up_s", self.warm_up_s, 0.0, 1e6, "0 s to 1000000 s of virtual time warm up")?;
        within(
            "--replications",
            f64::from(self.replications),
            1.0,
            1000.0,
            "1 to 1000 runs make an experiment",
        )
    }

    /// The span of a run.
    #[must_use]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // `as` saturates
    pub fn span(&self) -> Span {
        Span { warm_up_ns: (self.warm_up_s * 1e9) as u64, measure_ns: (self.measure_s * 1e9) as u64 }
    }
}

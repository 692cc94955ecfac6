//! The file that `fence calibrate` writes and `[scheduler.predict]` names: what the devices of one fence were found to do.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use virtbench_fence::predict::{FastPredictor, Predictors, SlowPredictor};
use virtbench_fence_sim::calibrate::Errors;

const FORMAT: u32 = 1;

/// What was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Predictions {
    /// Of this file.
    format: u32,
    /// Identity of the device that virtual disks live on.
    pub label: [u8; 16],
    /// The slow device, if it was measured.
    pub slow: Option<SlowFound>,
    /// The fast one.
    pub fast: Option<FastFound>,
}

impl Default for Predictions {
    fn default() -> Self {
        Self { format: FORMAT, label: [0; 16], slow: None, fast: None }
    }
}

/// What the slow device was found to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlowFound {
    /// Its path when it was measured.
    pub device: String,
    /// A flush, milliseconds.
    pub flush_ms: f64,
    /// Corners of its access time over distance: bytes and milliseconds.
    pub knots: Vec<(u64, f64)>,
    /// How far predictions were off.
    pub errors: Errors,
}

/// What the fast device was found to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FastFound {
    /// Its path when it was measured.
    pub device: String,
    /// A batch, microseconds.
    pub base_us: f64,
    /// Each I/O of it, microseconds.
    pub per_io_us: f64,
    /// How far predictions were off.
    pub errors: Errors,
}

impl SlowFound {
    pub(crate) fn new(device: &str, predictor: &SlowPredictor, errors: &Errors) -> Self {
        Self {
            device: device.to_owned(),
            flush_ms: predictor.flush_ns() as f64 / 1e6,
            knots: predictor.knots().iter().map(|knot| (knot.distance_bytes, knot.access_ns / 1e6)).collect(),
            errors: errors.clone(),
        }
    }
}

impl FastFound {
    pub(crate) fn new(device: &str, predictor: FastPredictor, errors: &Errors) -> Self {
        Self {
            device: device.to_owned(),
            base_us: predictor.base_ns / 1e3,
            per_io_us: predictor.per_io_ns / 1e3,
            errors: errors.clone(),
        }
    }
}

impl From<&Predictors> for PredictTable {
    fn from(predictors: &Predictors) -> Self {
        let Predictors { slow, fast } = predictors;
        Self {
            file: None,
            slow_knots: slow.knots().iter().map(|knot| (knot.distance_bytes, knot.access_ns / 1e6)).collect(),
            slow_flush_ms: slow.flush_ns() as f64 / 1e6,
            fast_base_us: fast.base_ns / 1e3,
            fast_per_io_us: fast.per_io_ns / 1e3,
        }
    }
}

impl Predictions {
    /// Reads a file.
    ///
    /// # Errors
    /// What is wrong with it, and what to do.
    pub fn read(path: &Path) -> Result<Self, String> {
        let again = "measure with `virtbench fence calibrate`";
        let text = fs::read_to_string(path).map_err(|error| format!("{error}: {again}"))?;
        let found: Self = toml::from_str(&text).map_err(|error| format!("{error}: {again}"))?;
        if found.format != FORMAT {
            return Err(format!("format {} is not known: {again}", found.format));
        }
        let times =
            found.slow.iter().flat_map(|slow| slow.knots.iter().map(|knot| knot.1).chain([slow.flush_ms]));
        let fast = found.fast.iter().flat_map(|fast| [fast.base_us, fast.per_io_us]);
        if times.chain(fast).any(|time| !time.is_finite() || time < 0.0) {
            return Err(format!("a predicted time is negative or no number: {again}"));
        }
        Ok(found)
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let text = toml::to_string_pretty(self).map_err(io::Error::other)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let temporary = path.with_file_name(format!(".{name}.{}", std::process::id()));
        let mut file = fs::File::create(&temporary)?;
        writeln!(
            file,
            "# Written by `virtbench fence calibrate`; name it in [scheduler.predict] as file = ..."
        )?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    }

    /// Puts what was found in place of what a configuration says.
    pub fn apply(&self, table: &mut PredictTable) {
        if let Some(slow) = &self.slow {
            (table.slow_knots, table.slow_flush_ms) = (slow.knots.clone(), slow.flush_ms);
        }
        if let Some(fast) = &self.fast {
            (table.fast_base_us, table.fast_per_io_us) = (fast.base_us, fast.per_io_us);
        }
    }
}

/// `[scheduler.predict]`: what `fence calibrate` finds. The defaults are a 7200 rpm disk and the SSD of [VirtualFence 2013], section 4.4.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PredictTable {
    /// What `fence calibrate` wrote, in place of the rest; relative to the configuration.
    pub file: Option<PathBuf>,
    /// Corners of the slow device's access time over distance: bytes and milliseconds.
    pub slow_knots: Vec<(u64, f64)>,
    /// A flush of the slow device, milliseconds.
    pub slow_flush_ms: f64,
    /// A batch on the fast device, microseconds.
    pub fast_base_us: f64,
    /// Each I/O of it, microseconds.
    pub fast_per_io_us: f64,
}

impl Default for PredictTable {
    fn default() -> Self {
        Self {
            file: None,
            slow_knots: vec![(0, 4.2), (1 << 30, 6.5), (16 << 30, 10.5), (160_000_000_000, 26.0)],
            slow_flush_ms: 0.0,
            fast_base_us: 0.0,
            fast_per_io_us: 396.0,
        }
    }
}

//! `[scheduler.predict]` of a configuration.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

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

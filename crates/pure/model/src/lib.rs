//! Numbers to conclusions.
//!
//! [`interval`] says how well a few samples know their mean, and keeps that within what a figure
//! can be, [`ratio`] compares two sides measured
//! in turn, [`surface`] applies both to a run: native against VM at every point of the throughput
//! surface ([ESX Disk 2003], section 3), and [`pairwise`] compares many configurations with each other
//! ([ESX Adapters 2006]), [`mod@predict`] says how an application will do elsewhere ([ESX Disk 2003], sections 4 and 5). Everything is a pure function of its arguments; where
//! chance is needed, a seed is an argument.

mod answered;
pub mod application;
pub mod before_after;
pub mod desktops;
pub mod history;
pub mod host_load;
pub mod interval;
mod line;
pub mod oltp;
pub mod operations;
pub mod pairwise;
pub mod papers;
pub mod platform;
pub mod predict;
pub mod quantity;
pub mod ratio;
pub mod repetition;
pub mod samples;
pub mod saturation;
pub mod slo;
pub mod steady;
mod summary;
pub mod surface;
pub mod surface_fit;
#[cfg(test)]
mod test_support;
pub mod tiles;
pub mod tiles_study;
pub mod together;

pub use answered::{Unanswered, answered};
pub use application::{ApplicationAnalysis, analyse_application, summarise_application};
pub use before_after::{BeforeAfter, before_after};
pub use host_load::{BusyHost, MachineUse, busy_host, is_busy, machine_use};
pub use interval::{CONFIDENCE, Estimate, FigureKind, Method, Span, mean_interval, mean_interval_at};
pub use pairwise::{Analysis, Margin, Measurements, analyse};
pub use predict::{Prediction, predict};
pub use ratio::{
    OverExperiments, Ratio, deviation, deviation_percent, over_experiments, paired_ratio, paired_ratio_at,
};
pub use repetition::{MAX_REPETITIONS, Progress, RepeatRule, relative_half_width};
pub use saturation::{
    Knee, Probe, RunResult, Saturation, SaturationRules, SaturationSearch, Verdict, knee_by_power,
};
pub use slo::{LatencyMetric, Slo, SloError, parse_slo};
pub use steady::{Steadiness, SteadyDetector, SteadyError, SteadyRule, is_steady, parse_steady};
pub use summary::{StudySummary, summarise, summarise_analysis};
pub use surface::{ComparedPoint, Comparison, CurvePoint, RatioSummary, Side, compare};
pub use surface_fit::{FittedPoint, FittedSurface, MAX_GRID_POINTS, SurfaceFit};
pub use tiles::{TilesAnalysis, analyse_tiles, summarise_tiles};

//! What a model load did on two machines ([ESX Disk 2003], Tables 4 and 5): the evidence of the latency model.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The model load on one machine: threads that each think, then wait for one I/O ([ESX Disk 2003], 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelRun {
    /// Operations per second.
    pub io_per_second: f64,
    /// Mean response time of an operation, in milliseconds.
    pub response_ms: f64,
}

/// What computing costs on the subject, against the reference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Compute {
    /// How much longer the mix of user code and system code without disk I/O takes, in percent: V.
    pub overhead_percent: f64,
    /// Time of the same computation on the subject's machine as a multiple of the reference's: F.
    #[serde(default = "same")]
    pub time_factor: f64,
}

fn same() -> f64 {
    1.0
}

/// The model load on both machines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ModelRuns {
    /// Where the figures come from.
    pub source: String,
    /// Threads of the model load.
    pub workers: u32,
    /// Think time of each, in milliseconds: C.
    pub think_ms: f64,
    /// On the reference.
    pub reference: ModelRun,
    /// On the subject.
    pub subject: ModelRun,
    /// What computing costs there.
    pub compute: Compute,
    /// What the application's capacity turned out to be on the subject, where it was tried.
    #[serde(default)]
    pub actual_capacity: Option<f64>,
}

/// Figures that no run can have.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{figure}: {why}")]
pub struct ModelLoadError {
    /// The figure that is wrong.
    pub figure: &'static str,
    /// What is wrong with it.
    pub why: String,
}

impl ModelRuns {
    /// Whether runs can be so.
    ///
    /// # Errors
    /// The first figure that cannot be, by its name.
    pub fn check(&self) -> Result<(), ModelLoadError> {
        let refuse = |figure, why: String| Err(ModelLoadError { figure, why });
        if self.workers == 0 {
            return refuse("workers", "there must be one".into());
        }
        let positive = [
            ("reference.io_per_second", self.reference.io_per_second),
            ("subject.io_per_second", self.subject.io_per_second),
            ("reference.response_ms", self.reference.response_ms),
            ("subject.response_ms", self.subject.response_ms),
            ("compute.time_factor", self.compute.time_factor),
        ];
        for (figure, value) in positive {
            if !(value.is_finite() && value > 0.0) {
                return refuse(figure, format!("{value} is not above zero"));
            }
        }
        for (figure, value) in
            [("think_ms", self.think_ms), ("compute.overhead_percent", self.compute.overhead_percent + 100.0)]
        {
            if !(value.is_finite() && value >= 0.0) {
                return refuse(figure, "it is too low, or no number".into());
            }
        }
        for (figure, run) in
            [("reference.response_ms", self.reference), ("subject.response_ms", self.subject)]
        {
            let cycle_ms = f64::from(self.workers) / run.io_per_second * 1e3;
            let spent_ms = self.think_ms + run.response_ms;
            if spent_ms > cycle_ms * 1.05 {
                let why = format!(
                    "with the think time it is {spent_ms:.1} ms, more than the {cycle_ms:.1} ms that {} workers at \
                     {} I/O per second have for each (Little's law)",
                    self.workers, run.io_per_second
                );
                return refuse(figure, why);
            }
        }
        Ok(())
    }
}

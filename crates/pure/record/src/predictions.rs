//! Applications whose throughput in a VM was predicted and then measured: trials, and their summary.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::host_use::HostUse;
use crate::outcome::TakenHistogram;
use crate::plan::Plan;
use crate::point::Record;
use crate::predictions_plan::CaseSet;
use crate::summary::Conclusion;

/// One prediction and what happened: a line of `results.jsonl` in a run of predictions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trial {
    /// Version of the format, [`crate::FORMAT`].
    pub format: u32,
    /// The application.
    pub case: String,
    /// The storage that it was predicted for; nothing where it was predicted for a VM from what it did natively.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Which of its trials, from 1.
    pub trial: u32,
    /// What its capacity counts.
    pub capacity_name: String,
    /// Its capacity on the reference.
    pub reference: f64,
    /// What was predicted for the subject.
    pub predicted: f64,
    /// What it did there.
    pub truth: f64,
    /// The interval at each of [`CONFIDENCES`](Self::CONFIDENCES).
    pub intervals: Vec<[f64; 2]>,
    /// What the reference did in turn with the subject, as a multiple of what it did when the application was profiled: `reference` is multiplied
    /// by it, and `predicted` and `intervals` unless a storage's rate limits them, as what a host does moves within minutes. Nothing where the two
    /// were not measured in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_turn: Option<f64>,
    /// What was said to limit it there.
    pub bottleneck: String,
    /// The subject's processors while it ran, user and system code, in percent of one, where that was seen.
    #[serde(default)]
    pub machine_percent: Option<[f64; 2]>,
    /// The application's CPU use on the reference, user and system code, in percent of one processor.
    #[serde(default)]
    pub reference_percent: Option<[f64; 2]>,
    /// What the host did while the application ran on the reference, where that was seen.
    #[serde(default)]
    pub reference_host: Option<HostUse>,
    /// What the host did while it ran on the subject.
    #[serde(default)]
    pub machine_host: Option<HostUse>,
}

impl Trial {
    /// Confidences at which intervals are held against the truth, as shares.
    pub const CONFIDENCES: [f64; 6] = [0.5, 0.6, 0.7, 0.8, 0.9, 0.95];

    /// The application, and what it was predicted for where there are several.
    #[must_use]
    pub fn name(&self) -> String {
        self.storage
            .as_ref()
            .map_or_else(|| self.case.clone(), |storage| format!("{} on {storage}", self.case))
    }

    /// What the host did beside each of the two measurements, where that was seen.
    pub fn hosts(&self) -> impl Iterator<Item = &HostUse> {
        self.reference_host.iter().chain(&self.machine_host)
    }

    /// How far the prediction was off, in percent of the truth; above zero where too much was predicted.
    #[must_use]
    pub fn error_percent(&self) -> f64 {
        100.0 * (self.predicted / self.truth - 1.0)
    }

    /// Whether the interval of this number among [`CONFIDENCES`](Self::CONFIDENCES) held the truth.
    #[must_use]
    pub fn holds(&self, index: usize) -> bool {
        self.intervals.get(index).is_some_and(|[low, high]| (*low..=*high).contains(&self.truth))
    }
}

impl Record for Trial {
    fn follows(plan: &Plan) -> bool {
        plan.predictions().is_some()
    }

    const BESIDE: &'static [&'static str] = &["costs.json", "storages.json", "profiles", "prepared"];

    fn take_histograms(&mut self) -> Vec<TakenHistogram> {
        Vec::new()
    }
}

/// How often intervals of a stated confidence held the truth.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Coverage {
    /// What they state, as a share.
    pub confidence: f64,
    /// Trials whose truth they held, as a share of all; nothing without trials.
    pub held: Option<f64>,
}

/// An application over its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictedCase {
    /// Its name.
    pub case: String,
    /// What its throughput counts.
    pub unit: String,
    /// How often it was tried.
    pub trials: usize,
    /// Mean throughput natively.
    pub native: f64,
    /// Mean of what was predicted for the VM.
    pub predicted: f64,
    /// Mean throughput in the VM.
    pub measured: f64,
    /// Mean of the trials' errors with their signs, in percent of what was measured.
    pub error_percent: f64,
    /// Mean of their sizes, in percent.
    pub absolute_error_percent: f64,
}

/// What `study predictions` prints as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PredictionsSummary {
    /// Conclusion and files.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// Which set the applications are; null where their file does not say.
    pub set: Option<CaseSet>,
    /// Mean over the applications of how far single trials were off, in percent; null without any.
    pub mean_absolute_error_percent: Option<f64>,
    /// The same with the trials of each application averaged before.
    pub mean_error_of_averages_percent: Option<f64>,
    /// Do intervals hold what they say?
    pub coverage: Vec<Coverage>,
    /// Application by application, in the order in which they were tried first.
    pub cases: Vec<PredictedCase>,
    /// Applications of the plan without a trial.
    pub cases_without_trials: Vec<String>,
    /// Every trial.
    pub trials: Vec<Trial>,
}

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

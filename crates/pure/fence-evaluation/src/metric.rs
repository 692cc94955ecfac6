//! What is read off an experiment: for which figure, of which machine, by which metric.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_model::deviation_percent;

use crate::case::{CaseResult, Sample, VmResult};

/// A figure of [VirtualFence 2013], or one beyond it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs)] // title() says what each shows
pub enum PaperFigure {
    #[serde(rename = "1")]
    One,
    #[serde(rename = "4a")]
    FourA,
    #[serde(rename = "4b")]
    FourB,
    #[serde(rename = "5")]
    Five,
    #[serde(rename = "6")]
    Six,
    #[serde(rename = "7")]
    Seven,
    #[serde(rename = "8")]
    Eight,
    #[serde(rename = "own")]
    Own,
}

/// A figure that is not reproduced.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("{0:?} is no figure that is reproduced: write 1, 4a, 4b, 5, 6, 7, 8 or own")]
pub struct FigureError(String);

impl std::str::FromStr for PaperFigure {
    type Err = FigureError;

    fn from_str(text: &str) -> Result<Self, FigureError> {
        Self::ALL.into_iter().find(|figure| figure.name() == text).ok_or_else(|| FigureError(text.to_owned()))
    }
}

/// Which machines of a case a value is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Machine {
    /// The low-intensity one.
    Low,
    /// The mean of all in each experiment (section 4.1).
    All,
    /// The one that deviates most.
    Worst,
}

impl Machine {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::All => "mean of all",
            Self::Worst => "worst",
        }
    }
}

/// What is read off a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Percent.
    ThroughputDeviation,
    /// Percent.
    ResponseDeviation,
    /// Milliseconds.
    ResponseAloneMs,
    /// Milliseconds.
    ResponseTogetherMs,
    /// 99 % of response times are at most this, milliseconds.
    P99AloneMs,
    /// 99 % of response times are at most this, milliseconds.
    P99TogetherMs,
    /// Accesses a second alone as a multiple of those of the same machine on the unfenced hard disk.
    Intensity,
}

impl Metric {
    /// Deviations and times, in the order of tables.
    pub const ALL: [Self; 6] = [
        Self::ThroughputDeviation,
        Self::ResponseDeviation,
        Self::ResponseAloneMs,
        Self::ResponseTogetherMs,
        Self::P99AloneMs,
        Self::P99TogetherMs,
    ];
    /// The paper's metric of both performances.
    pub const DEVIATIONS: [Self; 2] = [Self::ThroughputDeviation, Self::ResponseDeviation];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThroughputDeviation => "throughput deviation",
            Self::ResponseDeviation => "response deviation",
            Self::ResponseAloneMs => "response alone",
            Self::ResponseTogetherMs => "response together",
            Self::P99AloneMs => "p99 alone",
            Self::P99TogetherMs => "p99 together",
            Self::Intensity => "load over that on HDD",
        }
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ThroughputDeviation | Self::ResponseDeviation => "%",
            Self::ResponseAloneMs | Self::ResponseTogetherMs | Self::P99AloneMs | Self::P99TogetherMs => "ms",
            Self::Intensity => "x",
        }
    }

    /// In one experiment; `hdd` is the same machine on the unfenced hard disk.
    fn value(self, [alone, together]: &[Sample; 2], hdd: Option<&[Sample; 2]>) -> f64 {
        let deviation = |figure: fn(&Sample) -> f64| deviation_percent(figure(alone), figure(together));
        match self {
            Self::ThroughputDeviation => deviation(|sample| sample.per_second).unwrap_or(f64::NAN),
            Self::ResponseDeviation => deviation(|sample| sample.mean_ms).unwrap_or(f64::NAN),
            Self::ResponseAloneMs => alone.mean_ms,
            Self::ResponseTogetherMs => together.mean_ms,
            Self::P99AloneMs => alone.p99_ms,
            Self::P99TogetherMs => together.p99_ms,
            Self::Intensity => hdd.map_or(f64::NAN, |[hdd, _]| alone.per_second / hdd.per_second),
        }
    }

    /// Of one machine, by experiment.
    fn by_experiment(self, vm: &VmResult, hdd: Option<&VmResult>) -> Vec<f64> {
        let hdd = |experiment: usize| hdd.and_then(|vm| vm.figures.experiments.get(experiment));
        let experiments = vm.figures.experiments.iter().enumerate();
        experiments.map(|(place, experiment)| self.value(experiment, hdd(place))).collect()
    }

    /// Of the machines asked for, by experiment.
    pub(crate) fn read(
        self,
        machine: Machine,
        result: &CaseResult,
        hdd: Option<&CaseResult>,
    ) -> Option<Vec<f64>> {
        let of_vm = |(vm, result): (usize, &VmResult)| {
            self.by_experiment(result, hdd.and_then(|hdd| hdd.vms.get(vm)))
        };
        let mut all = result.vms.iter().enumerate().map(of_vm);
        match machine {
            Machine::Low => all.next(),
            Machine::Worst => all.max_by(|a, b| mean(a).total_cmp(&mean(b))),
            Machine::All => {
                let all: Vec<Vec<f64>> = all.collect();
                let experiment = |place: usize| mean(&all.iter().map(|vm| vm[place]).collect::<Vec<_>>());
                Some((0..all.first()?.len()).map(experiment).collect())
            }
        }
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

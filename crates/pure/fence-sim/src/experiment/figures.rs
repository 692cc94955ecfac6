//! Which cases each figure of the paper needs, and what is read off them.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_model::Estimate;

use super::case::{Case, CaseResult, VmResult};
use super::published::Published;
use super::system::{Sharing, Store, System};
use crate::client::Personality;

/// A figure of paper 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Figure {
    /// Deviation without `VirtualFence`.
    #[serde(rename = "1")]
    One,
}

/// A figure that is not reproduced.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("--figure {0:?} is none that is reproduced: write 1, 4a, 4b, 5, 6, 7 or 8")]
pub struct FigureError(String);

impl std::str::FromStr for Figure {
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
    /// The mean of all (section 4.1).
    All,
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
}

impl Metric {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 4] =
        [Self::ThroughputDeviation, Self::ResponseDeviation, Self::ResponseAloneMs, Self::ResponseTogetherMs];

    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ThroughputDeviation => "throughput deviation",
            Self::ResponseDeviation => "response deviation",
            Self::ResponseAloneMs => "response alone",
            Self::ResponseTogetherMs => "response together",
        }
    }

    /// Its unit.
    #[must_use]
    pub const fn unit(self) -> &'static str {
        match self {
            Self::ThroughputDeviation | Self::ResponseDeviation => "%",
            Self::ResponseAloneMs | Self::ResponseTogetherMs => "ms",
        }
    }

    fn of(self, vm: &VmResult) -> Estimate {
        match self {
            Self::ThroughputDeviation => vm.throughput_deviation,
            Self::ResponseDeviation => vm.response_deviation,
            Self::ResponseAloneMs => vm.response_ms[0],
            Self::ResponseTogetherMs => vm.response_ms[1],
        }
    }
}

/// One measured value beside what was published of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Of which figure.
    pub figure: Figure,
    /// Of which workload.
    pub workload: Personality,
    /// Of which system, by its label.
    pub system: String,
    /// Of which machines.
    pub machine: Machine,
    /// Which metric.
    pub metric: Metric,
    /// What was measured.
    pub measured: Estimate,
    /// What was published, if the text has it.
    pub published: Option<Published>,
}

impl Row {
    /// By how much the measured mean lies outside the published band; zero where it holds, nothing where
    /// nothing was published.
    #[must_use]
    pub fn outside(&self) -> Option<f64> {
        self.published.as_ref().map(|published| published.outside(self.measured.mean))
    }
}

impl Figure {
    /// All that are reproduced, in the paper's order.
    pub const ALL: [Self; 1] = [Self::One];

    /// Its number in the paper.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::One => "1",
        }
    }

    /// What it shows.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::One => "Deviation of the low-intensity VM in 4-VM heterogeneous workloads, without a fence",
        }
    }

    /// The cases it needs, each with the label that its rows get.
    #[must_use]
    pub fn cases(self, workloads: &[Personality]) -> Vec<(String, Case)> {
        let each = |systems: &[(&str, System)]| -> Vec<(String, Case)> {
            workloads
                .iter()
                .flat_map(|workload| {
                    systems
                        .iter()
                        .map(|(label, system)| ((*label).to_owned(), Case::heterogeneous(*system, *workload)))
                })
                .collect()
        };
        match self {
            Self::One => each(&[
                ("HDD", System::new(Store::Hdd, Sharing::Fifo)),
                ("SSD", System::new(Store::Ssd, Sharing::Fifo)),
            ]),
        }
    }

    /// Reads its rows off the result of one of its cases.
    #[must_use]
    pub fn rows(self, label: &str, case: &Case, result: &CaseResult, published: &[Published]) -> Vec<Row> {
        let machine = Machine::Low;
        let Some(vm) = result.vms.first() else { return Vec::new() };
        Metric::ALL
            .into_iter()
            .map(|metric| {
                let same = |one: &&Published| {
                    one.figure == self
                        && one.workload == case.workload
                        && one.system == label
                        && one.machine == machine
                        && one.metric == metric
                };
                Row {
                    figure: self,
                    workload: case.workload,
                    system: label.to_owned(),
                    machine,
                    metric,
                    measured: metric.of(vm),
                    published: published.iter().find(same).cloned(),
                }
            })
            .collect()
    }
}

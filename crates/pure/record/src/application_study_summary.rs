//! What a program reads of a study of an application.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::appliance::PathCost;
use crate::appliance_side::ApplianceSide;
use crate::application_study_plan::ApplicationMetric;
use crate::summary::{Conclusion, Estimated};

/// What is known of one metric of one side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationMetricNumbers {
    /// Alone, in the metric's unit.
    pub alone: Option<Estimated>,
    /// How many times the native side of as many processors it is, alone; nothing natively.
    pub ratio: Option<Estimated>,
    /// Beside the neighbours, in the metric's unit.
    pub beside: Option<Estimated>,
    /// How many times its value alone that is.
    pub beside_ratio: Option<Estimated>,
    /// The deviation of [VirtualFence 2013], section 4.1, in percent.
    pub deviation_percent: Option<Estimated>,
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationStudySide {
    /// The side.
    #[serde(flatten)]
    pub side: ApplianceSide,
    /// Its metrics, by name.
    pub metrics: BTreeMap<String, ApplicationMetricNumbers>,
    /// What the path to it costs, as it was measured last.
    pub path: Option<PathCost>,
    /// What the path from it to each further tier costs, by the tier's name, as it was measured last.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tier_paths: BTreeMap<String, PathCost>,
    /// Use of the host's processors alone, in percent of one.
    pub host_cpu_percent: Option<Estimated>,
    /// Measurements that failed, and why.
    pub failures: Vec<String>,
}

/// The figures of a study of an application, for programs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApplicationStudySummary {
    /// What a reader takes away.
    #[serde(flatten)]
    pub conclusion: Conclusion,
    /// What was read from what the client prints.
    pub metrics: Vec<ApplicationMetric>,
    /// How many ran beside it where it was not alone.
    pub neighbours: u32,
    /// The sides, in the plan's order.
    pub sides: Vec<ApplicationStudySide>,
}

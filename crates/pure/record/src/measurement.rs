//! One line of `results.jsonl`: what became of one measurement, in whichever study.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::FORMAT;
use crate::outcome::TakenHistogram;
use crate::plan::Plan;
use crate::point::Record;

/// Which measurement of a study it is. A study says with it what its lines hold.
pub trait MeasurementKey: Debug + Clone + PartialEq + Serialize + DeserializeOwned {
    /// What is measured.
    type Measured: Debug + Clone + PartialEq + Serialize + DeserializeOwned;
    /// What is known of a failure beside its reason.
    type Detail: Debug + Clone + PartialEq + Serialize + DeserializeOwned;

    /// Whether a run with this plan has such measurements.
    fn follows(plan: &Plan) -> bool;

    /// Takes the latency histograms out of what was measured, to be kept beside the results.
    fn take_histograms(&self, _started_unix_ns: u64, _measured: &mut Self::Measured) -> Vec<TakenHistogram> {
        Vec::new()
    }
}

/// Of a failure nothing is known beside its reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NoDetail {}

/// What became of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Status<M, D = NoDetail> {
    /// It was measured.
    Measured(Box<M>),
    /// It was measured, but too much is missing for a result.
    Incomplete {
        /// What the user is told.
        why: String,
        /// What was measured nevertheless.
        partly: Box<M>,
    },
    /// It failed.
    Failed {
        /// What the user is told.
        why: String,
        /// What else is known of the failure.
        #[serde(flatten)]
        detail: D,
    },
    /// This host cannot measure it.
    Unavailable {
        /// What is missing.
        why: String,
    },
}

impl<M, D> Status<M, D> {
    /// It was measured.
    #[must_use]
    pub fn measured(measured: M) -> Self {
        Self::Measured(Box::new(measured))
    }
}

/// One line of `results.jsonl`: one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(
        bound = "K: schemars::JsonSchema, K::Measured: schemars::JsonSchema, K::Detail: schemars::JsonSchema"
    )
)]
#[serde(bound = "")]
pub struct Measurement<K: MeasurementKey> {
    /// Version of the format, [`crate::FORMAT`].
    pub format: u32,
    /// Which measurement it is.
    #[serde(flatten)]
    pub key: K,
    /// When measuring began, in nanoseconds since 1970 by the host's clock.
    pub started_unix_ns: u64,
    /// What became of it.
    #[serde(flatten)]
    pub status: Status<K::Measured, K::Detail>,
}

impl<K: MeasurementKey> Measurement<K> {
    /// A line in this version's format.
    #[must_use]
    pub fn new(key: K, started_unix_ns: u64, status: Status<K::Measured, K::Detail>) -> Self {
        Self { format: FORMAT, key, started_unix_ns, status }
    }

    /// What was measured, where it is a result.
    #[must_use]
    pub fn measured(&self) -> Option<&K::Measured> {
        if let Status::Measured(measured) = &self.status { Some(measured) } else { None }
    }

    /// Why it is no result although it was measured, and what was.
    #[must_use]
    pub fn incomplete(&self) -> Option<(&str, &K::Measured)> {
        if let Status::Incomplete { why, partly } = &self.status { Some((why, partly)) } else { None }
    }

    /// What was measured, also where that is no result.
    #[must_use]
    pub fn seen(&self) -> Option<&K::Measured> {
        self.measured().or_else(|| self.incomplete().map(|(_, partly)| partly))
    }

    /// Why it failed, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        if let Status::Failed { why, .. } = &self.status { Some(why) } else { None }
    }

    /// What else is known of its failure, if it failed.
    #[must_use]
    pub fn detail(&self) -> Option<&K::Detail> {
        if let Status::Failed { detail, .. } = &self.status { Some(detail) } else { None }
    }

    /// What this host lacks for it, if that is why there is nothing.
    #[must_use]
    pub fn unavailable(&self) -> Option<&str> {
        if let Status::Unavailable { why } = &self.status { Some(why) } else { None }
    }
}

impl<K: MeasurementKey> Record for Measurement<K> {
    fn follows(plan: &Plan) -> bool {
        K::follows(plan)
    }

    fn take_histograms(&mut self) -> Vec<TakenHistogram> {
        match &mut self.status {
            Status::Measured(measured) | Status::Incomplete { partly: measured, .. } => {
                self.key.take_histograms(self.started_unix_ns, measured)
            }
            Status::Failed { .. } | Status::Unavailable { .. } => Vec::new(),
        }
    }
}

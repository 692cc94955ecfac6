//! What was measured of a database under TPC-C's transactions on several sides: a line for each measurement.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::appliance::ApplianceFacts;
use crate::application::Quantity;
use crate::histogram::TakenHistogram;
use crate::host_use::HostUse;
use crate::measurement::{Measurement, MeasurementKey};
use crate::oltp::OltpOutcome;
use crate::oltp_timeline::OltpTimeline;
use crate::plan::Plan;

/// What a measurement is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OltpStep {
    /// How many users saturate the side, and the curve of users against throughput.
    Search,
    /// The side at its own saturation.
    Saturation,
    /// As many users as saturate the side that takes fewest.
    EqualUsers,
}

impl OltpStep {
    /// As tags and tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Search => "search",
            Self::Saturation => "saturation",
            Self::EqualUsers => "equal_users",
        }
    }
}

/// What was seen of a side under a load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpMeasured {
    /// The load and what came of it.
    pub outcome: OltpOutcome,
    /// The appliance as it ran.
    pub appliance: ApplianceFacts,
    /// The whole host meanwhile.
    pub host: HostUse,
    /// What else is known, in the units of [`Quantity`].
    pub known: BTreeMap<Quantity, f64>,
    /// What is not, and why not.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unavailable: BTreeMap<Quantity, String>,
    /// What else happened meanwhile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<OltpTimeline>,
    /// Exits from the guest to KVM a transaction, by what KVM calls them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kvm_exits: BTreeMap<String, f64>,
    /// Why exits are not known, of a VM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_kvm_exits: Option<String>,
}

/// What is known of a measurement that failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpFailureDetail {
    /// What was measured all the same, by a load that ended early or left a database that is not consistent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Box<OltpOutcome>>,
}

/// One measurement of one side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpKey {
    /// Name of the side.
    pub side: String,
    /// What it is for.
    pub step: OltpStep,
    /// Users.
    pub users: u32,
    /// Which repetition, from 0; the search has one.
    pub repetition: u32,
}

/// One line of `results.jsonl` of a study of a database.
pub type OltpRecord = Measurement<OltpKey>;

impl MeasurementKey for OltpKey {
    type Measured = OltpMeasured;
    type Detail = OltpFailureDetail;

    fn follows(plan: &Plan) -> bool {
        plan.oltp().is_some()
    }

    fn take_histograms(&self, started_unix_ns: u64, measured: &mut OltpMeasured) -> Vec<TakenHistogram> {
        let tag = format!("{}/{}-u{}/{}", self.side, self.step.name(), self.users, self.repetition);
        let length_ns = measured.outcome.elapsed_ns;
        let kinds = measured.outcome.transactions.iter_mut();
        let taken = kinds.filter_map(|(kind, transactions)| {
            let histogram = transactions.histogram.take()?;
            Some(TakenHistogram { tag: format!("{tag}/{kind}"), started_unix_ns, length_ns, histogram })
        });
        taken.collect()
    }
}

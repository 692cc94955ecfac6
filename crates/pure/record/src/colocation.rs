//! Machines that ran at one moment, and what came of each ([Multi-VM 2010]; [VirtualFence 2013],
//! section 4).

use serde::{Deserialize, Serialize};

use crate::histogram::TakenHistogram;
use crate::host_use::{HostUse, ProcessUse};
use crate::plan::Plan;
use crate::point::{ClockCheck, Record};
use crate::set_start::{MemberStart, SetStart};
use crate::workload::JobOutcome;

/// What one machine of a set did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberMeasured {
    /// What its job did, by its own clock.
    pub outcome: JobOutcome,
    /// Its measuring time by the host's clock, in nanoseconds.
    pub host_elapsed_ns: u64,
    /// Its clock against the host's.
    pub clock: Option<ClockCheck>,
    /// How it began, in a run of environments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<MemberStart>,
    /// What its own machine's processors did, where that is not this host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<HostUse>,
}

impl MemberMeasured {
    /// Whether its clock ran so far off that its figures must not be used.
    #[must_use]
    pub fn has_suspect_clock(&self) -> bool {
        self.clock.as_ref().is_some_and(ClockCheck::is_suspect)
    }
}

/// What became of one machine of a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum MemberStatus {
    /// It was measured.
    Measured(Box<MemberMeasured>),
    /// It failed while it was measured; the others went on.
    Failed {
        /// What the failure said.
        why: String,
    },
    /// Its job is not possible here; nothing of the set was started.
    Unavailable {
        /// Why not.
        why: String,
    },
}

/// One machine of a set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberRecord {
    /// Its name.
    pub vm: String,
    /// What became of it.
    #[serde(flatten)]
    pub status: MemberStatus,
}

impl MemberRecord {
    /// What it did, if it was measured.
    #[must_use]
    pub fn measured(&self) -> Option<&MemberMeasured> {
        if let MemberStatus::Measured(measured) = &self.status { Some(measured) } else { None }
    }

    /// What it did, if that can be used: its clock ran true, and nothing cut it short.
    #[must_use]
    pub fn usable(&self) -> Option<&MemberMeasured> {
        self.measured().filter(|measured| !measured.has_suspect_clock() && !measured.outcome.is_interrupted())
    }

    /// Why what it did cannot be used; nothing where it can.
    #[must_use]
    pub fn unusable(&self) -> Option<String> {
        match &self.status {
            MemberStatus::Failed { why } | MemberStatus::Unavailable { why } => Some(why.clone()),
            MemberStatus::Measured(measured) => match &measured.clock {
                Some(clock) if clock.is_suspect() => {
                    Some(format!("the guest's clock ran {:.1} % off the host's", clock.drift_ppm / 1e4))
                }
                _ => measured.outcome.is_interrupted().then(|| "it was stopped before its time".to_owned()),
            },
        }
    }
}

/// One repetition of one set: a line of `results.jsonl` in a run of sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetRecord {
    /// Version of the format, [`crate::FORMAT`].
    pub format: u32,
    /// Name of the set.
    pub set: String,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// How often it was measured: more than once where a clock ran wrong, or a guest hung.
    pub attempts: u32,
    /// When measuring was to begin, in nanoseconds since 1970 by the host's clock.
    pub started_unix_ns: u64,
    /// How exactly its machines began together, where several of environments did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<SetStart>,
    /// What it cost this host; nothing where nothing was started on it.
    pub host: Option<HostUse>,
    /// Whose that was.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<ProcessUse>,
    /// Its machines, in the plan's order.
    pub members: Vec<MemberRecord>,
}

impl SetRecord {
    /// The tag under which a machine's latencies stand in the HdrHistogram log.
    #[must_use]
    pub fn histogram_tag(&self, vm: &str) -> String {
        format!("{vm}/{}/{}", self.set, self.repetition)
    }

    /// Whether every machine of it was measured and can be used.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.members.iter().all(|member| member.usable().is_some())
    }
}

impl Record for SetRecord {
    fn follows(plan: &Plan) -> bool {
        plan.colocation().is_some()
    }

    fn take_histograms(&mut self) -> Vec<TakenHistogram> {
        let tags: Vec<String> = self.members.iter().map(|member| self.histogram_tag(&member.vm)).collect();
        let started_unix_ns = self.started_unix_ns;
        let members = self.members.iter_mut().zip(tags);
        let taken = members.flat_map(|(member, tag)| match &mut member.status {
            MemberStatus::Measured(measured) => measured.outcome.take_histograms(&tag, started_unix_ns),
            _ => Vec::new(),
        });
        taken.collect()
    }
}

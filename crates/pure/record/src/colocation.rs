//! Machines that ran at one moment, and what came of each ([Multi-VM 2010]; [VirtualFence 2013],
//! section 4).
//!
//! How exactly machines of several hosts began at one moment.
//!
//! A machine that begins `e` after the others lacks their company for `e` of its measuring time `T`. What it does in that time
//! is what it does alone, so that a deviation of `d` is found as `d * (1 - e / T)`: with `e` at a hundredth of `T` a
//! deviation of 50 % is found as 49.5 %. Progress is compared interval by interval as well, whose length is half a second
//! unless said otherwise: with `e` at 50 ms nine tenths of each meet the same moment of the others.

use serde::{Deserialize, Serialize};

use crate::host_use::{HostUse, ProcessUse};
use crate::outcome::TakenHistogram;
use crate::plan::Plan;
use crate::point::{ClockCheck, Record};
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

/// The part of the measuring time that machines may lack each other's company.
const NEEDED_SHARE: u64 = 100;

/// The most of it, in nanoseconds.
const NEEDED_NS: u64 = 50_000_000;

/// How a machine began, by the controller's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberStart {
    /// When it began to measure, in nanoseconds after the agreed moment; before it where negative.
    pub late_ns: i64,
    /// What is not known of the offset of its clock, by which it was told when to begin, in nanoseconds: half of the
    /// quickest round trip.
    pub offset_uncertainty_ns: u64,
    /// By how much its clock jumped between two looks at it, in nanoseconds: what no steady clock gains or loses; nothing
    /// where it ran steadily.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_jump_ns: Option<i64>,
    /// How often the offset was measured: before, every few seconds meanwhile, and after.
    pub offsets_measured: u32,
}

impl MemberStart {
    /// The most by which it may have run apart from the agreed moment, in nanoseconds.
    #[must_use]
    pub fn uncertainty_ns(&self) -> u64 {
        let jumped_ns = self.clock_jump_ns.map_or(0, i64::unsigned_abs);
        self.late_ns.unsigned_abs().saturating_add(self.offset_uncertainty_ns).saturating_add(jumped_ns)
    }
}

/// How exactly the machines of a set began together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SetStart {
    /// The most by which one of them may have run apart from the agreed moment, in nanoseconds: how late it was, what is not
    /// known of its clock's offset, and by how much its clock jumped.
    pub uncertainty_ns: u64,
    /// What the study needs, in nanoseconds: a hundredth of the shortest measuring time, and 50 ms at most.
    pub needed_ns: u64,
    /// Whether it is no more than that.
    pub is_enough: bool,
}

impl SetStart {
    /// Of machines that ran together, each with its measuring time in nanoseconds; nothing of fewer than two.
    #[must_use]
    pub fn of(members: &[(MemberStart, u64)]) -> Option<Self> {
        if members.len() < 2 {
            return None;
        }
        let uncertainty_ns = members.iter().map(|(start, _)| start.uncertainty_ns()).max()?;
        let shortest_ns = members.iter().map(|(_, elapsed_ns)| *elapsed_ns).min()?;
        let needed_ns = (shortest_ns / NEEDED_SHARE).min(NEEDED_NS);
        Some(Self { uncertainty_ns, needed_ns, is_enough: uncertainty_ns <= needed_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(late_ns: i64, offset_uncertainty_ns: u64, clock_jump_ns: Option<i64>) -> MemberStart {
        MemberStart { late_ns, offset_uncertainty_ns, clock_jump_ns, offsets_measured: 2 }
    }

    #[test]
    fn a_set_needs_a_hundredth_of_its_time_and_fifty_milliseconds_at_most() {
        const SECOND: u64 = 1_000_000_000;
        let exact = start(0, 0, None);
        let two =
            |seconds: u64, other| SetStart::of(&[(exact, seconds * SECOND), (other, 7 * SECOND)]).unwrap();
        let enough = two(2, start(15_000_000, 5_000_000, None));
        assert_eq!(
            (enough.uncertainty_ns, enough.needed_ns, enough.is_enough),
            (20_000_000, 20_000_000, true)
        );
        assert!(!two(2, start(-15_000_000, 5_000_001, None)).is_enough);
        assert!(!two(2, start(0, 0, Some(-30_000_000))).is_enough);
        assert_eq!(two(6, exact).needed_ns, 50_000_000);
        assert_eq!(SetStart::of(&[(exact, SECOND)]), None, "one alone began together with nobody");
    }
}

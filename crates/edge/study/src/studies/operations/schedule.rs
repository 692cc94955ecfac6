//! What a study of management operations has left to do, and whether its platform can do it.

use std::collections::HashSet;

use virtbench_model::Probe;
use virtbench_model::operations::{most_pieces, search_rate};
use virtbench_operations::Mix;
use virtbench_platforms::Platform;
use virtbench_record::{
    HostUse, OperationKind, OperationsKey, OperationsLoad, OperationsMeasured, OperationsPlan,
    OperationsRecord, Plan,
};

use crate::runner::event::Estimate;
use crate::runner::steps::{Recorded, Schedule};
use crate::study_error::StudyError;

/// The mix as this platform can do it, and what was taken out of it.
///
/// # Errors
/// The platform lacks an operation that is not to be left out, or what is left cannot be kept for long.
pub fn mix_on(
    platform: &dyn Platform,
    mix: &Mix,
    leave_out: bool,
) -> Result<(Mix, Vec<OperationKind>), StudyError> {
    let missing = |kind: &OperationKind| Some((*kind, platform.lacks(*kind)?));
    let lacks: Vec<(OperationKind, String)> = mix.shares().keys().filter_map(missing).collect();
    if lacks.is_empty() {
        return Ok((mix.clone(), Vec::new()));
    }
    if !leave_out {
        let each: Vec<String> = lacks.iter().map(|(kind, why)| format!("{}: {why}", kind.name())).collect();
        let said = format!(
            "{} cannot do what the mix has.\n{}\nLeave it out with --leave-out, which keeps the ratios of the others, or give another --mix",
            platform.facts().address,
            each.join("\n")
        );
        return Err(StudyError::input(said));
    }
    let kinds: Vec<OperationKind> = lacks.into_iter().map(|(kind, _)| kind).collect();
    Ok((mix.without(&kinds).map_err(StudyError::input)?, kinds))
}

/// Pieces, and how long their loads take about. How fast the platform makes VMs is not known before it has made some: that is said beside it.
#[must_use]
pub fn estimate_operations(plan: &OperationsPlan) -> Estimate {
    Schedule::estimate(plan)
}

impl Schedule for OperationsPlan {
    type Key = OperationsKey;

    fn plan(&self) -> Plan {
        Plan::Operations(self.clone())
    }

    fn estimate(&self) -> Estimate {
        let steps = self.vms.len();
        let is_search = matches!(self.load, OperationsLoad::Max { .. });
        let pieces = if is_search { most_pieces(self) } else { self.pieces };
        let each_ns = u64::from(pieces).saturating_mul(self.piece_ns).saturating_add(self.warm_ns);
        let total_ns = each_ns.saturating_mul(steps as u64);
        let vms: u64 = self.vms.iter().map(|vms| u64::from(*vms)).sum();
        let besides = format!("how long the platform takes to make and remove {vms} VMs");
        let estimate = Estimate::of_total(pieces as usize * steps, total_ns).beside(besides);
        if is_search { estimate.at_most() } else { estimate }
    }

    fn next(&self, recorded: Recorded<'_, OperationsKey>) -> Option<OperationsKey> {
        self.vms.iter().find_map(|vms| next_piece(self, *vms, recorded))
    }

    /// How many pieces a search needs is not known.
    fn left(&self, recorded: Recorded<'_, OperationsKey>) -> Option<u64> {
        if matches!(self.load, OperationsLoad::Max { .. }) {
            return None;
        }
        let left = self.vms.iter().flat_map(|vms| missing_pieces(self, *vms, recorded));
        Some(left.count() as u64)
    }

    fn host<'m>(&self, measured: &'m OperationsMeasured) -> Option<&'m HostUse> {
        Some(&measured.host)
    }

    fn remarks(&self, record: &OperationsRecord) -> Vec<String> {
        let why = record.incomplete().map(|(why, _)| why).or_else(|| record.failure());
        why.map(|why| format!("Piece {} is no result: {why}", record.key.piece + 1)).into_iter().collect()
    }
}

/// The next piece at a number of VMs: of the plan, or the next of the search for the highest rate.
fn next_piece(
    plan: &OperationsPlan,
    vms: u32,
    recorded: Recorded<'_, OperationsKey>,
) -> Option<OperationsKey> {
    let key = |piece, per_minute| OperationsKey { vms, piece, per_minute };
    if let OperationsLoad::Max { .. } = &plan.load {
        let (search, pieces) = search_rate(plan, vms, recorded.all)?;
        return search.next_probe().map(|probe| match probe {
            Probe::Closed => key(pieces, None),
            Probe::Offered { per_second } => key(pieces, Some(per_second * 60.0)),
        });
    }
    missing_pieces(plan, vms, recorded).next().map(|piece| key(piece, plan.rate(piece)))
}

/// Pieces of the plan at a number of VMs that are missing.
fn missing_pieces(
    plan: &OperationsPlan,
    vms: u32,
    recorded: Recorded<'_, OperationsKey>,
) -> impl Iterator<Item = u32> + use<> {
    // Asked anew for each piece, all records would be looked at as often as there are pieces.
    let tried = recorded.not_lacked().filter(|key| key.vms == vms).map(|key| key.piece);
    let tried: HashSet<u32> = tried.collect();
    (0..plan.pieces).filter(move |piece| !tried.contains(piece))
}

/// How long what is not planned takes, as it turns out.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// To make a VM.
    vm_ns: Option<u64>,
    /// Until the last operations of a piece were over: of all so far.
    drains_ns: u64,
    pieces: u64,
}

impl Pace {
    /// So many VMs were made in this time.
    pub(super) fn made(&mut self, vms: u32, took_ns: u64) {
        self.vm_ns = Some(took_ns / u64::from(vms).max(1));
    }

    /// A piece took so much longer than its load.
    pub(super) fn drained(&mut self, took_ns: u64) {
        self.drains_ns = self.drains_ns.saturating_add(took_ns);
        self.pieces += 1;
    }

    /// How long is left once so many VMs are there; nothing where that is not known, as in a search.
    pub(super) fn left_ns(
        &self,
        plan: &OperationsPlan,
        vms: u32,
        records: &[OperationsRecord],
    ) -> Option<u64> {
        if matches!(plan.load, OperationsLoad::Max { .. }) {
            return None;
        }
        let vm_ns = self.vm_ns?;
        let piece_ns = plan.piece_ns + self.drains_ns / self.pieces.max(1);
        let here = plan.vms.iter().position(|one| *one == vms)?;
        let left = plan.vms[here..].iter().map(|at| {
            let missing = (0..plan.pieces).filter(|piece| !is_there(*at, *piece, records)).count() as u64;
            let making_ns = if *at == vms { 0 } else { u64::from(*at).saturating_mul(vm_ns) };
            if missing == 0 { 0 } else { missing.saturating_mul(piece_ns) + plan.warm_ns + making_ns }
        });
        Some(left.fold(0, u64::saturating_add))
    }
}

/// In whole seconds.
pub(super) fn rounded_s(ns: u64) -> u64 {
    ns.div_ceil(1_000_000_000).saturating_mul(1_000_000_000)
}

fn is_there(vms: u32, piece: u32, records: &[OperationsRecord]) -> bool {
    records
        .iter()
        .any(|record| (record.key.vms, record.key.piece) == (vms, piece) && record.measured().is_some())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use virtbench_samples::operations::{plan, record};

    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn the_estimate_of_a_plan_is_its_loads_and_says_what_is_not_known() {
        let plan = OperationsPlan { vms: vec![1000], pieces: 1, piece_ns: 5 * S, warm_ns: S, ..plan() };
        let said = estimate_operations(&plan).to_string();
        assert_eq!(
            said,
            "1 measurements, about 6s and how long the platform takes to make and remove 1000 VMs"
        );
        let search = OperationsPlan { load: OperationsLoad::Max { limit_ns: S }, ..plan };
        let said = estimate_operations(&search).to_string();
        assert!(said.starts_with("at most 85 measurements, at most 7m 6s and how long"), "{said}");
    }

    #[test]
    fn what_is_left_follows_the_vms_and_the_drains_that_were_seen() {
        // A platform that makes ten VMs a second, and whose operations take 6 s.
        let plan =
            OperationsPlan { vms: vec![10, 100], pieces: 4, piece_ns: 20 * S, warm_ns: 10 * S, ..plan() };
        let mut pace = Pace::default();
        assert_eq!(pace.left_ns(&plan, 10, &[]), None, "no VM was made yet");
        pace.made(10, S);
        let course_ns = |drain: u64| 4 * (20 + drain) * S + 10 * S;
        assert_eq!(pace.left_ns(&plan, 10, &[]), Some(2 * course_ns(0) + 10 * S));
        let done: Vec<OperationsRecord> =
            (0..4).map(|piece| record(10, piece, Some(60.0), BTreeMap::new())).collect();
        done.iter().for_each(|_| pace.drained(6 * S));
        pace.made(100, 20 * S);
        assert_eq!(pace.left_ns(&plan, 100, &done), Some(course_ns(6)));
    }
}

//! What a study of management operations has left to do, and whether its platform can do it.

use virtbench_operations::Mix;
use virtbench_platforms::Platform;
use virtbench_record::{OperationKind, OperationsLoad, OperationsPlan, OperationsRecord};

use crate::estimate::Estimate;
use crate::study_error::StudyError;

/// A VM that is made and started takes about so long, in nanoseconds.
const VM_NS: u64 = 500_000_000;
/// Pieces that a search takes about.
const SEARCH_PIECES: u32 = 16;

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

/// Pieces, and how long they take about.
#[must_use]
pub fn estimate_operations(plan: &OperationsPlan) -> Estimate {
    let pieces = if matches!(plan.load, OperationsLoad::Max { .. }) { SEARCH_PIECES } else { plan.pieces };
    let each_ns = u64::from(pieces).saturating_mul(plan.piece_ns).saturating_add(plan.warm_ns);
    let total_ns = plan.vms.iter().fold(0u64, |sum, vms| {
        sum.saturating_add(each_ns).saturating_add(u64::from(*vms).saturating_mul(VM_NS))
    });
    Estimate::of_total(pieces as usize * plan.vms.len(), total_ns)
}

/// The first piece at a number of VMs, from this one on, that is not measured yet.
pub(super) fn first_missing(
    plan: &OperationsPlan,
    vms: u32,
    from: u32,
    records: &[OperationsRecord],
) -> Option<u32> {
    let is_there = |piece: &u32| {
        records
            .iter()
            .any(|record| record.vms == vms && record.piece == *piece && record.measured().is_some())
    };
    (from..plan.pieces).find(|piece| !is_there(piece))
}

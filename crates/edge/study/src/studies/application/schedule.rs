//! What a study of an application has left to do, worked out from what is in its folder.

use virtbench_record::{ApplianceSide, ApplicationKey, ApplicationPlan, ApplicationRecord};

use crate::runner::estimate::Estimate;

/// A boot under emulation, until services are ready and the path is measured, takes about this long, in nanoseconds.
const VM_BOOT_NS: u64 = 10_000_000_000;
const NATIVE_BOOT_NS: u64 = 4_000_000_000;

/// A side alone or beside neighbours, once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measurement<'a> {
    pub(super) side: &'a ApplianceSide,
    pub(super) neighbours: u32,
    pub(super) repetition: u32,
}

impl Measurement<'_> {
    pub(super) fn key(&self) -> ApplicationKey {
        let Self { side, neighbours, repetition } = *self;
        ApplicationKey { side: side.name.clone(), neighbours, repetition }
    }
}

/// Everything: repetition by repetition, sides in turn, each alone and beside neighbours, from one end and from the other.
pub(super) fn all(plan: &ApplicationPlan) -> Vec<Measurement<'_>> {
    let mut wanted = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut turn: Vec<Measurement<'_>> = plan
            .sides
            .iter()
            .flat_map(|side| {
                plan.company().into_iter().map(move |neighbours| Measurement { side, neighbours, repetition })
            })
            .collect();
        if repetition % 2 == 1 {
            turn.reverse();
        }
        wanted.append(&mut turn);
    }
    wanted
}

/// What of it has not been measured. What failed is tried again.
pub(super) fn missing<'a>(plan: &'a ApplicationPlan, records: &[ApplicationRecord]) -> Vec<Measurement<'a>> {
    let is_there = |one: &Measurement<'_>| {
        records.iter().any(|record| {
            record.measured().is_some()
                && record.key.side == one.side.name
                && record.key.neighbours == one.neighbours
                && record.key.repetition == one.repetition
        })
    };
    all(plan).into_iter().filter(|one| !is_there(one)).collect()
}

/// About how long everything takes, where the user says how long a client takes.
pub(super) fn estimate(plan: &ApplicationPlan) -> Estimate {
    let each = all(plan).into_iter().map(|one| {
        let boot_ns = if one.side.vm { VM_BOOT_NS } else { NATIVE_BOOT_NS };
        let boots = u64::from(one.neighbours) + 1 + plan.tiers.len() as u64;
        Some(plan.takes_ns?.saturating_add(boot_ns.saturating_mul(boots)))
    });
    let each: Vec<Option<u64>> = each.collect();
    let total: Option<u64> = each.iter().copied().try_fold(0u64, |sum, one| Some(sum.saturating_add(one?)));
    match total {
        Some(total_ns) => Estimate::of_total(each.len(), total_ns),
        None => Estimate { total_ns: None, ..Estimate::of_total(each.len(), 0) },
    }
}

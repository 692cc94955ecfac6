//! What a study of a database has left to do, worked out from what is in its folder.

use virtbench_model::oltp::{UsersFound, UsersSearch, users_point};
use virtbench_record::{ApplianceSide, OltpRecord, OltpStep, OltpStudyPlan, OltpUsers};

/// About how many numbers of users a search tries.
const SEARCH_STEPS: u64 = 7;
/// A boot under emulation, until the database accepts connections, takes about this long, in nanoseconds.
const VM_BOOT_NS: u64 = 15_000_000_000;
const NATIVE_BOOT_NS: u64 = 3_000_000_000;

/// How far the search of one side is.
pub(super) enum SideSearch {
    /// Users are raised until nothing is gained.
    Auto(UsersSearch),
    /// These are left, with the search that has seen those that were measured.
    Given(Vec<u32>, UsersSearch),
}

impl SideSearch {
    /// Where the search of a side stands, by its records.
    pub(super) fn of(plan: &OltpStudyPlan, side: &ApplianceSide, records: &[OltpRecord]) -> Self {
        let most = match &plan.users {
            OltpUsers::Auto { most } => *most,
            OltpUsers::Given(numbers) => numbers.iter().copied().max().unwrap_or(1),
        };
        let mut search = UsersSearch::new(most);
        let of_search = records.iter().filter(|record| record.key.side == side.name);
        for record in of_search.filter(|record| record.key.step == OltpStep::Search) {
            if let Some(measured) = record.measured() {
                search.observe(users_point(record, measured));
            }
        }
        match &plan.users {
            OltpUsers::Auto { .. } => Self::Auto(search),
            OltpUsers::Given(numbers) => {
                let tried: Vec<u32> = search.points().iter().map(|point| point.users).collect();
                let left = numbers.iter().copied().filter(|users| !tried.contains(users));
                Self::Given(left.collect(), search)
            }
        }
    }

    /// The number to measure next; `None` once the answer is known.
    pub(super) fn next_users(&self) -> Option<u32> {
        match self {
            Self::Auto(search) => search.next_users(),
            Self::Given(left, _) => left.first().copied(),
        }
    }

    /// What saturates the side, as far as is known.
    pub(super) fn found(&self) -> Option<UsersFound> {
        match self {
            Self::Auto(search) | Self::Given(_, search) => search.found(),
        }
    }
}

/// A measurement after the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Measurement<'a> {
    pub(super) side: &'a ApplianceSide,
    pub(super) step: OltpStep,
    pub(super) users: u32,
    pub(super) repetition: u32,
}

/// Everything that is to be measured after the search, and is not: repetition by repetition, sides in turn, from one end and from
/// the other. Sides whose search found nothing are left out.
pub(super) fn wanted<'a>(plan: &'a OltpStudyPlan, records: &[OltpRecord]) -> Vec<Measurement<'a>> {
    let saturation = |side: &ApplianceSide| Some(SideSearch::of(plan, side, records).found()?.point.users);
    let found: Vec<(&ApplianceSide, u32)> =
        plan.sides.iter().filter_map(|side| Some((side, saturation(side)?))).collect();
    let fewest = found.iter().map(|(_, users)| *users).min().unwrap_or(0);
    let mut wanted = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut sides = found.clone();
        if repetition % 2 == 1 {
            sides.reverse();
        }
        for (side, users) in sides {
            wanted.push(Measurement { side, step: OltpStep::Saturation, users, repetition });
            if users != fewest {
                wanted.push(Measurement { side, step: OltpStep::EqualUsers, users: fewest, repetition });
            }
        }
    }
    wanted.retain(|one| {
        !records.iter().any(|record| {
            record.measured().is_some()
                && record.key.side == one.side.name
                && record.key.step == one.step
                && record.key.repetition == one.repetition
        })
    });
    wanted
}

/// Measurements in all, and how long they take about, in nanoseconds.
pub(super) fn estimate(plan: &OltpStudyPlan) -> (u64, u64) {
    let steps = match &plan.users {
        OltpUsers::Auto { .. } => SEARCH_STEPS,
        OltpUsers::Given(numbers) => numbers.len() as u64,
    };
    let each = |time_ns: u64| plan.ramp_up_ns.saturating_add(time_ns);
    let repetitions = u64::from(plan.repetitions);
    let mut total_ns = 0u64;
    let mut measurements = 0;
    for (index, side) in plan.sides.iter().enumerate() {
        let boot_ns = if side.vm { VM_BOOT_NS } else { NATIVE_BOOT_NS };
        // One side has the fewest users; the others are measured with as many too.
        let later = repetitions * if index == 0 { 1 } else { 2 };
        measurements += steps + later;
        let search_ns = steps.saturating_mul(each(plan.search_ns)).saturating_add(boot_ns);
        let later_ns = later.saturating_mul(each(plan.time_ns).saturating_add(boot_ns));
        total_ns = total_ns.saturating_add(search_ns).saturating_add(later_ns);
    }
    (measurements, total_ns)
}

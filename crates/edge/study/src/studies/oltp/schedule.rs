//! What a study of a database needs of its sides, and what it has left to do, worked out from what is in its folder.

use std::path::Path;

use virtbench_model::oltp::{UsersFound, UsersSearch, users_point};
use virtbench_record::{
    ApplianceSide, GuestFacts, HostUse, OltpFailureDetail, OltpKey, OltpMeasured, OltpRecord, OltpStep,
    OltpStudyPlan, OltpUsers, Plan,
};

use crate::runner::event::Estimate;
use crate::runner::progress::Progress;
use crate::runner::steps::{NoResult, Recorded, Schedule};

/// About how many numbers of users a search tries.
const SEARCH_STEPS: u64 = 7;

/// A boot under emulation, until the database accepts connections, takes about this long, in nanoseconds.
const VM_BOOT_NS: u64 = 15_000_000_000;

const NATIVE_BOOT_NS: u64 = 3_000_000_000;

/// How far the search of one side is.
enum SideSearch {
    /// Users are raised until nothing is gained.
    Auto(UsersSearch),
    /// These are left, with the search that has seen those that were measured.
    Given(Vec<u32>, UsersSearch),
}

impl SideSearch {
    /// Where the search of a side stands, by its records.
    fn of(plan: &OltpStudyPlan, side: &ApplianceSide, records: &[OltpRecord]) -> Self {
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
    fn next_users(&self) -> Option<u32> {
        match self {
            Self::Auto(search) => search.next_users(),
            Self::Given(left, _) => left.first().copied(),
        }
    }

    /// What saturates the side, as far as is known.
    fn found(&self) -> Option<UsersFound> {
        match self {
            Self::Auto(search) | Self::Given(_, search) => search.found(),
        }
    }
}

/// The step after the search: repetition by repetition, sides in turn, from one end and from the other. Sides whose search found
/// nothing are left out.
fn after_search(plan: &OltpStudyPlan, recorded: Recorded<'_, OltpKey>) -> Vec<OltpKey> {
    let saturation =
        |side: &ApplianceSide| Some(SideSearch::of(plan, side, recorded.all).found()?.point.users);
    let found: Vec<(&ApplianceSide, u32)> =
        plan.sides.iter().filter_map(|side| Some((side, saturation(side)?))).collect();
    let fewest = found.iter().map(|(_, users)| *users).min().unwrap_or(0);
    let mut keys = Vec::new();
    for repetition in 0..plan.repetitions {
        let mut sides = found.clone();
        if repetition % 2 == 1 {
            sides.reverse();
        }
        for (side, users) in sides {
            let key = |step, users| OltpKey { side: side.name.clone(), step, users, repetition };
            keys.push(key(OltpStep::Saturation, users));
            if users != fewest {
                keys.push(key(OltpStep::EqualUsers, fewest));
            }
        }
    }
    let is = |a: &OltpKey, b: &OltpKey| {
        (a.side.as_str(), a.step, a.repetition) == (b.side.as_str(), b.step, b.repetition)
    };
    keys.retain(|key| recorded.lacks(|other| is(key, other)));
    keys
}

/// The next number of users of a side's search. A search in which a measurement failed goes on the next time.
fn next_of_search(
    plan: &OltpStudyPlan,
    side: &ApplianceSide,
    recorded: Recorded<'_, OltpKey>,
) -> Option<OltpKey> {
    let is_over = recorded.latest.iter().any(|record| {
        record.key.side == side.name && record.key.step == OltpStep::Search && record.measured().is_none()
    });
    let users = SideSearch::of(plan, side, recorded.all).next_users().filter(|_| !is_over)?;
    Some(OltpKey { side: side.name.clone(), step: OltpStep::Search, users, repetition: 0 })
}

impl Schedule for OltpStudyPlan {
    type Key = OltpKey;

    fn plan(&self) -> Plan {
        Plan::Oltp(self.clone())
    }

    fn estimate(&self) -> Estimate {
        let (measurements, total_ns) = estimate(self);
        Estimate::of_total(usize::try_from(measurements).unwrap_or(usize::MAX), total_ns)
    }

    fn next(&self, recorded: Recorded<'_, OltpKey>) -> Option<OltpKey> {
        let search = self.sides.iter().find_map(|side| next_of_search(self, side, recorded));
        search.or_else(|| after_search(self, recorded).into_iter().next())
    }

    /// How long a search goes on is not known.
    fn left(&self, recorded: Recorded<'_, OltpKey>) -> Option<u64> {
        let is_searched = self.sides.iter().all(|side| next_of_search(self, side, recorded).is_none());
        is_searched.then(|| after_search(self, recorded).len() as u64)
    }

    fn host<'m>(&self, measured: &'m OltpMeasured) -> Option<&'m HostUse> {
        Some(&measured.host)
    }

    fn remarks(&self, record: &OltpRecord) -> Vec<String> {
        record.failure().map(|why| format!("{}: {why}", record.key.side)).into_iter().collect()
    }
}

/// Measurements in all, and how long they take about, in nanoseconds.
fn estimate(plan: &OltpStudyPlan) -> (u64, u64) {
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

/// A load for one measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OltpLoad {
    /// Users.
    pub users: u32,
    /// Before measuring, in nanoseconds.
    pub ramp_up_ns: u64,
    /// Of measuring, in nanoseconds.
    pub time_ns: u64,
    /// Seed of what users do.
    pub seed: u64,
}

/// Why a measurement of a database has no result.
pub type OltpFailure = NoResult<OltpFailureDetail>;

/// The sides of a study.
pub trait OltpSides {
    /// A file or folder on the storage that every side works on.
    fn storage(&self) -> &Path;

    /// Starts a side anew, from the bytes that every start begins with.
    ///
    /// # Errors
    /// It does not get ready, or the study cannot go on.
    fn boot(
        &mut self,
        side: &ApplianceSide,
        progress: &mut Progress<'_>,
    ) -> Result<Box<dyn OltpBoot + '_>, OltpFailure>;
}

/// A side that runs. Dropping it ends it.
pub trait OltpBoot {
    /// Applies a load, and checks afterwards that the database is consistent.
    ///
    /// # Errors
    /// The side failed under it or is not consistent, or the study cannot go on.
    fn measure(&mut self, load: OltpLoad, progress: &mut Progress<'_>) -> Result<OltpMeasured, OltpFailure>;

    /// The guest that it is; nothing natively.
    fn guest(&self) -> Option<GuestFacts>;
}

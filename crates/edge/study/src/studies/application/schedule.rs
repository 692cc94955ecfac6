//! What a study of an application needs of its sides, and measures in which order.

use std::path::Path;

use virtbench_record::{
    ApplianceSide, ApplicationFailureDetail, ApplicationKey, ApplicationMeasured, ApplicationPlan,
    ApplicationRecord, GuestFacts, HostUse, Plan,
};

use crate::runner::event::Estimate;
use crate::runner::progress::Progress;
use crate::runner::steps::{NoResult, Recorded, Schedule};

/// A boot under emulation, until services are ready and the path is measured, takes about this long, in nanoseconds.
const VM_BOOT_NS: u64 = 10_000_000_000;

const NATIVE_BOOT_NS: u64 = 4_000_000_000;

/// Everything: repetition by repetition, sides in turn, each alone and beside neighbours, from one end and from the other.
fn all(plan: &ApplicationPlan) -> Vec<ApplicationKey> {
    let mut all = Vec::new();
    for repetition in 0..plan.repetitions {
        let of_side = |side: String| {
            plan.company().into_iter().map(move |neighbours| ApplicationKey {
                side: side.clone(),
                neighbours,
                repetition,
            })
        };
        let mut turn: Vec<ApplicationKey> =
            plan.sides.iter().flat_map(|side| of_side(side.name.clone())).collect();
        if repetition % 2 == 1 {
            turn.reverse();
        }
        all.append(&mut turn);
    }
    all
}

/// A side alone or beside neighbours, in words.
pub(super) fn words(key: &ApplicationKey) -> String {
    let company = match key.neighbours {
        0 => "alone".to_owned(),
        1 => "beside 1 neighbour".to_owned(),
        many => format!("beside {many} neighbours"),
    };
    format!("{}, {company}: repetition {}", key.side, key.repetition + 1)
}

impl Schedule for ApplicationPlan {
    type Key = ApplicationKey;

    fn plan(&self) -> Plan {
        Plan::Application(self.clone())
    }

    /// The time is known where the user says how long a client takes.
    fn estimate(&self) -> Estimate {
        let all = all(self);
        let each = all.iter().map(|key| {
            let is_vm = self.sides.iter().any(|side| side.name == key.side && side.vm);
            let boot_ns = if is_vm { VM_BOOT_NS } else { NATIVE_BOOT_NS };
            let boots = u64::from(key.neighbours) + 1 + self.tiers.len() as u64;
            Some(self.takes_ns?.saturating_add(boot_ns.saturating_mul(boots)))
        });
        let total_ns: Option<u64> =
            each.into_iter().try_fold(0u64, |sum, one| Some(sum.saturating_add(one?)));
        Estimate { total_ns, ..Estimate::of_total(all.len(), 0) }
    }

    fn next(&self, recorded: Recorded<'_, ApplicationKey>) -> Option<ApplicationKey> {
        all(self).into_iter().find(|key| recorded.lacks(|other| other == key))
    }

    fn left(&self, recorded: Recorded<'_, ApplicationKey>) -> Option<u64> {
        let left = all(self).into_iter().filter(|key| recorded.lacks(|other| other == key));
        Some(left.count() as u64)
    }

    fn host<'m>(&self, measured: &'m ApplicationMeasured) -> Option<&'m HostUse> {
        Some(&measured.host)
    }

    fn remarks(&self, record: &ApplicationRecord) -> Vec<String> {
        record.failure().map(|why| format!("{}: {why}", words(&record.key))).into_iter().collect()
    }
}

/// Why a measurement of an application has no result.
pub type ApplicationFailure = NoResult<ApplicationFailureDetail>;

/// The sides of a study.
pub trait ApplicationSides {
    /// A file or folder on the storage that every side works on.
    fn storage(&self) -> &Path;

    /// Boots a side anew, with so many neighbours beside it, from the bytes that every start begins with, and runs the client.
    /// Returns its result, and the guest that the side is.
    ///
    /// # Errors
    /// An appliance or a client fails, or the study cannot go on.
    fn measure(
        &mut self,
        side: &ApplianceSide,
        neighbours: u32,
        progress: &mut Progress<'_>,
    ) -> Result<(ApplicationMeasured, Option<GuestFacts>), ApplicationFailure>;
}

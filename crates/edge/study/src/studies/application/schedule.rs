//! What a study of an application measures, in which order.

use virtbench_record::{
    ApplicationKey, ApplicationMeasured, ApplicationPlan, ApplicationRecord, HostUse, Plan,
};

use crate::runner::estimate::Estimate;
use crate::runner::steps::{Recorded, Schedule};

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

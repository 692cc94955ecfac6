//! A plan as a file: what it is for, what it is, and the world in which it was found, so that it can be simulated again.

use serde::{Deserialize, Serialize};

use crate::plan::{Layout, Plan, PlanError, Targets};
use crate::settings::Settings;
use crate::system::{MOST_PLANNED, Sharing, SlotCounts, Store, System};
use virtbench_fence::catalogue;

/// The shortest and the longest slot, milliseconds.
const SLOT_MS: std::ops::RangeInclusive<f64> = 0.1..=10_000.0;

/// A plan with what it is for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// What is asked for.
    pub targets: Targets,
    /// What is configured.
    pub plan: PlanTable,
    /// The world.
    #[serde(default)]
    pub settings: Settings,
}

/// What of a plan is configured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanTable {
    /// Length of a slot in milliseconds; virtual devices where it is absent.
    pub slot_ms: Option<f64>,
    /// Slots of each machine in a rotation, as many as `targets.loads`; one each where they are absent.
    pub slots: Option<Vec<u8>>,
    /// The hit rate that caches are sized for, percent.
    pub hit_percent: f64,
    /// Where partitions lie on the hard disk.
    pub layout: Layout,
}

impl Planned {
    /// A plan that was found.
    #[must_use]
    pub fn new(targets: &Targets, plan: &Plan, settings: &Settings) -> Self {
        let slots = match plan.system.sharing {
            Sharing::Rotation(_, counts) => Some(counts[..targets.loads.len().min(MOST_PLANNED)].to_vec()),
            _ => None,
        };
        let hit_percent = plan.system.hit_percent().unwrap_or(catalogue::HIT_PERCENT);
        let table = PlanTable { slot_ms: plan.slot_ms(), slots, hit_percent, layout: plan.layout };
        Self { targets: targets.clone(), plan: table, settings: *settings }
    }

    /// The plan.
    ///
    /// # Errors
    /// A value outside its range, by its name.
    pub fn plan(&self) -> Result<Plan, PlanError> {
        self.targets.check()?;
        let PlanTable { slot_ms, slots, hit_percent, layout } = &self.plan;
        if !(1.0..=99.0).contains(hit_percent) {
            return Err(PlanError::Value("`hit_percent`", "a hit rate lies between 1 and 99 percent"));
        }
        let sharing = match (slot_ms, slots) {
            (Some(ms), _) if !SLOT_MS.contains(ms) => {
                return Err(PlanError::Value("`slot_ms`", "a slot takes 0.1 to 10000 ms"));
            }
            (Some(ms), slots) => Sharing::Rotation(*ms, self.counts(slots.as_deref())?),
            (None, Some(_)) => {
                return Err(PlanError::Value("`slots`", "they need slot_ms; virtual devices have none"));
            }
            (None, None) => Sharing::Listed(&catalogue::PACED),
        };
        let store = Store::Partitioned { hit_percent: *hit_percent };
        Ok(Plan { system: System::new(store, sharing), layout: *layout })
    }

    fn counts(&self, slots: Option<&[u8]>) -> Result<SlotCounts, PlanError> {
        let machines = self.targets.loads.len();
        let ones = vec![1; machines];
        let given = slots.unwrap_or(&ones);
        if given.len() != machines || given.contains(&0) {
            return Err(PlanError::Value("`slots`", "each machine of `loads` has one slot or more"));
        }
        let mut counts = [0; MOST_PLANNED];
        counts.iter_mut().zip(given).for_each(|(count, given)| *count = *given);
        Ok(counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::plans;
    use virtbench_fence_sim::client::Personality;

    fn targets() -> Targets {
        Targets {
            workload: Personality::Webserver,
            loads: vec![10.0, 30.0],
            deviation_percent: 10.0,
            response_ms: 50.0,
        }
    }

    #[test]
    fn every_candidate_comes_back_from_its_file() {
        let settings = Settings { seed: 7, ..Settings::default() };
        for plan in plans(&targets().loads) {
            let planned = Planned::new(&targets(), &plan, &settings);
            let text = serde_json::to_string(&planned).unwrap();
            let back: Planned = serde_json::from_str(&text).unwrap();
            assert_eq!((back.plan().unwrap(), back.settings), (plan, settings), "{text}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        let plan = plans(&targets().loads)[0];
        let refused = |change: fn(&mut PlanTable)| {
            let mut planned = Planned::new(&targets(), &plan, &Settings::default());
            change(&mut planned.plan);
            planned.plan().unwrap_err().to_string()
        };
        assert!(refused(|plan| plan.slot_ms = Some(0.0)).contains("`slot_ms`"));
        assert!(refused(|plan| plan.slot_ms = None).contains("`slots`"));
        assert!(refused(|plan| plan.slots = Some(vec![1])).contains("`slots`"));
        assert!(refused(|plan| plan.slots = Some(vec![1, 0])).contains("`slots`"));
        assert!(refused(|plan| plan.hit_percent = 100.0).contains("`hit_percent`"));
    }
}

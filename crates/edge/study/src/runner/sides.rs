//! Studies of sides: each repetition measures every side, in turn from one end and from the other.

use virtbench_record::{HostUse, Plan, SamplesKey, SamplesMeasured, SamplesRecord, SidesPlan};

use crate::runner::event::Estimate;
use crate::runner::steps::{Recorded, Schedule};

/// A plan of a study of sides.
pub(crate) struct SidesSchedule {
    plan: Plan,
    sides: SidesPlan,
}

impl SidesSchedule {
    /// That of a plan; of a plan that has no sides nothing is measured.
    pub(crate) fn new(plan: Plan) -> Self {
        Self { sides: plan.sides().unwrap_or_default(), plan }
    }

    /// What is missing, in its order. What failed is tried again the next time, and so is what this host lacks.
    fn missing(&self, recorded: Recorded<'_, SamplesKey>) -> Vec<SamplesKey> {
        let is_out = |side: &str| {
            recorded.all.iter().any(|record| record.key.side == side && record.unavailable().is_some())
        };
        let mut missing = Vec::new();
        for repetition in 0..self.sides.repetitions {
            let mut turn = self.sides.sides.clone();
            if repetition % 2 == 1 {
                turn.reverse();
            }
            let keys = turn.into_iter().map(|side| SamplesKey { side, repetition });
            missing.extend(keys.filter(|key| recorded.lacks(|other| other == key) && !is_out(&key.side)));
        }
        missing
    }
}

impl Schedule for SidesSchedule {
    type Key = SamplesKey;

    fn plan(&self) -> Plan {
        self.plan.clone()
    }

    fn estimate(&self) -> Estimate {
        let measurements = self.sides.sides.len() * self.sides.repetitions as usize;
        Estimate::of_total(measurements, self.sides.takes_ns.saturating_mul(measurements as u64))
    }

    fn next(&self, recorded: Recorded<'_, SamplesKey>) -> Option<SamplesKey> {
        self.missing(recorded).into_iter().next()
    }

    fn left(&self, recorded: Recorded<'_, SamplesKey>) -> Option<u64> {
        Some(self.missing(recorded).len() as u64)
    }

    fn host<'m>(&self, measured: &'m SamplesMeasured) -> Option<&'m HostUse> {
        measured.host.as_ref()
    }

    fn remarks(&self, record: &SamplesRecord) -> Vec<String> {
        let side = &record.key.side;
        let failed = record.failure().map(|why| format!("{side}: {why}"));
        let unavailable = record.unavailable().map(|why| format!("{side} is unavailable: {why}"));
        failed.into_iter().chain(unavailable).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use virtbench_record::{Better, Sample};
    use virtbench_samples::samples as synthetic;

    use super::*;
    use crate::runner::run::{Run, RunEnd};
    use crate::runner::steps::{NoResult, Steps, Study, Taken, run_study};
    use crate::study_error::StudyError;

    /// Sides of which one fails the first time and one is not to be had.
    struct Invented {
        tries: Vec<String>,
    }

    impl Invented {
        fn once(&mut self, side: &str) -> Result<Taken<SamplesMeasured>, NoResult> {
            self.tries.push(side.to_owned());
            match side {
                "tap-vhost" => Err(NoResult::Unavailable("no vhost".into())),
                "tap" if self.tries.iter().filter(|tried| *tried == "tap").count() == 1 => {
                    Err(NoResult::failed("the guest died"))
                }
                _ => {
                    let samples = vec![Sample::new("requests", "1/s", Better::Higher, 1.0)];
                    Ok(Taken::of(SamplesMeasured { samples, ..SamplesMeasured::default() }, None))
                }
            }
        }
    }

    impl Study for Invented {
        type Schedule = SidesSchedule;

        fn measure(
            &mut self,
            first: SamplesKey,
            steps: &mut Steps<'_, '_, SidesSchedule>,
        ) -> Result<(), StudyError> {
            let side = first.side.clone();
            steps.take(first, |_| self.once(&side)).map(drop)
        }
    }

    fn run_once(study: &mut Invented, out: &std::path::Path, resume: bool) -> RunEnd {
        let stop = AtomicBool::new(false);
        let run = &mut Run { out, resume, command: Vec::new(), stop: &stop, observer: &mut () };
        run_study(&SidesSchedule::new(Plan::Network(synthetic::plan())), study, run).unwrap()
    }

    #[test]
    fn what_failed_is_recorded_and_tried_again_by_a_run_that_goes_on() {
        let temp = tempfile::tempdir().unwrap();
        let out = temp.path().join("run");
        let mut study = Invented { tries: Vec::new() };
        run_once(&mut study, &out, false).unwrap();
        assert_eq!(study.tries, ["native", "tap", "tap-vhost", "tap", "native", "native", "tap"]);
        study.tries = vec!["tap".into()];
        run_once(&mut study, &out, true).unwrap();
        assert_eq!(
            study.tries[1..],
            ["tap"],
            "what is not to be had is not tried within a folder that says so"
        );
    }
}

//! How long a study of several VMs takes, said before it begins and while it runs.

use std::time::Duration;

use indicatif::ProgressBar;
use virtbench_record::SetPlan;
use virtbench_study::SetStep;
use virtbench_units::format_duration_ns;
use virtbench_workload::JobSpec;

use crate::progress;

/// What a measurement takes beside its job: boots, where they are needed, and files that are made.
const BESIDE_NS: u64 = 5_000_000_000;

/// The course of a run by plan.
#[derive(Debug)]
pub struct Course {
    /// When each step begins and, last, when the last one ends, in nanoseconds; nothing where some job
    /// takes as long as it takes.
    moments_ns: Option<Vec<u64>>,
    steps: usize,
}

impl Course {
    /// The course of these steps, through sets whose members do these jobs.
    pub fn new(sets: &[SetPlan], jobs: &[JobSpec], steps: &[SetStep]) -> Self {
        let takes_ns = |step: &SetStep| -> Option<u64> {
            let members = sets.get(step.set)?.members.iter();
            let all: Option<Vec<u64>> = members.map(|member| known_ns(jobs.get(member.workload)?)).collect();
            Some(BESIDE_NS + all?.into_iter().max()?)
        };
        let mut moments = vec![0u64];
        let mut last_ns = 0u64;
        let known = steps.iter().all(|step| {
            let Some(takes_ns) = takes_ns(step) else { return false };
            last_ns = last_ns.saturating_add(takes_ns);
            moments.push(last_ns);
            true
        });
        Self { moments_ns: known.then_some(moments), steps: steps.len() }
    }

    /// How long all of it takes, for the end of a sentence.
    pub fn words(&self) -> String {
        match self.total_ns() {
            Some(total_ns) => {
                format!(", about {}", format_duration_ns(total_ns.div_ceil(1_000_000_000) * 1_000_000_000))
            }
            None => "; each takes as long as its tests take".into(),
        }
    }

    fn total_ns(&self) -> Option<u64> {
        self.moments_ns.as_ref().and_then(|moments| moments.last().copied())
    }

    /// A bar over the whole run.
    pub fn bar(&self) -> ProgressBar {
        match self.total_ns() {
            Some(total_ns) => progress::timer(Some(total_ns), "starting"),
            None => progress::bar(self.steps as u64, "starting"),
        }
    }

    /// Moves the bar to where it is when so many steps are done.
    pub fn show(&self, bar: &ProgressBar, done: usize) {
        match self.moments_ns.as_ref().and_then(|moments| moments.get(done)) {
            Some(moment_ns) => progress::tick(bar, Duration::from_nanos(*moment_ns)),
            None => bar.set_position(done as u64),
        }
    }
}

/// How long a job takes with its ramp-up, where that is known beforehand.
fn known_ns(job: &JobSpec) -> Option<u64> {
    let known = match job {
        JobSpec::Load(_) => true,
        JobSpec::Workload(spec) => spec.time_ns.is_some() || spec.workload.run_ns().is_some(),
    };
    known.then(|| job.ramp_ns().saturating_add(job.expected_ns()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_record::{MemberPlan, SetRole};
    use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

    fn course(seconds: &[u64], steps: &[usize]) -> Course {
        let job = |seconds: &u64| {
            let access = AccessSpec::single(AccessLine::new(4096, 100.0, 100.0));
            let times = (1_000_000_000, seconds * 1_000_000_000);
            JobSpec::Load(LoadSpec { ramp_ns: times.0, time_ns: times.1, ..LoadSpec::new(access, 1 << 20) })
        };
        let jobs: Vec<JobSpec> = seconds.iter().map(job).collect();
        let member = |workload| MemberPlan { vm: format!("vm{workload}"), workload, share_percent: None };
        let set = |members: Vec<MemberPlan>| SetPlan { name: "s".into(), role: SetRole::Together, members };
        let mut sets: Vec<SetPlan> = (0..jobs.len()).map(|workload| set(vec![member(workload)])).collect();
        sets.push(set((0..jobs.len()).map(member).collect()));
        let steps: Vec<SetStep> = steps.iter().map(|set| SetStep { set: *set, repetition: 0 }).collect();
        Course::new(&sets, &jobs, &steps)
    }

    #[test]
    fn machines_that_run_together_take_as_long_as_the_slowest() {
        // Alone 4 + 1 and 10 + 1 s, together 10 + 1 s, with 5 s beside each.
        let course = course(&[4, 10], &[0, 1, 2]);
        assert_eq!(course.moments_ns, Some(vec![0, 10_000_000_000, 26_000_000_000, 42_000_000_000]));
        assert_eq!(course.words(), ", about 42s");
    }

    #[test]
    fn nothing_to_do_takes_no_time() {
        assert_eq!(course(&[1], &[]).words(), ", about 0s");
    }
}

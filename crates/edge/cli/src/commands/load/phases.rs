//! Jobs that run at the same time, and phases one after another.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_engine::{Flow, FlowGroup, Target};
use virtbench_formats::Ends as EndsWith;
use virtbench_model::RepeatRule;
use virtbench_workload::LoadSpec;

use super::ends::Ends;
use super::job::{Job, Plan};
use super::measure::measure_among;
use super::open::{self, Purpose};
use super::perform::{Done, started_unix_ns};
use super::repetitions::Repetitions;
use crate::args::LoadArgs;
use crate::exit::{Failure, Kind};
use crate::{interrupt, progress};

/// How often what a job waits for is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// The jobs of a plan by phase, each with its index in the plan.
pub fn phases(plan: &Plan) -> Vec<Vec<(usize, &Job)>> {
    let mut phases: Vec<Vec<(usize, &Job)>> = Vec::new();
    for (index, job) in plan.jobs.iter().enumerate() {
        match phases.last_mut() {
            Some(phase) if phase.first().is_some_and(|(_, first)| first.group == job.group) => {
                phase.push((index, job));
            }
            _ => phases.push(vec![(index, job)]),
        }
    }
    phases
}

/// Whether a phase is one job that starts at once and ends by itself.
pub fn is_plain(phase: &[(usize, &Job)]) -> bool {
    matches!(phase, [(_, job)] if job.schedule.is_plain())
}

/// Refuses options that take one job at a time, before anything is run.
///
/// # Errors
/// One of them is given with jobs that run at the same time.
pub fn check(args: &LoadArgs, plan: &Plan) -> Result<(), Failure> {
    let given = [
        ("--repeat or --repeat-until", args.repeat.rule() != RepeatRule::Times(1)),
        ("--steady", args.repeat.steady.is_some()),
        ("--live", args.live),
    ];
    let special = phases(plan).into_iter().find(|phase| !is_plain(phase));
    match (special, given.iter().find(|(_, given)| *given)) {
        (Some(phase), Some((flag, _))) => {
            let names: Vec<&str> = phase.iter().take(4).filter_map(|(_, job)| job.name.as_deref()).collect();
            let message = format!(
                "{flag} takes jobs one at a time; {} of the file run at the same time or say themselves when they end",
                names.join(", ")
            );
            Err(Failure::message(Kind::Usage, message))
        }
        _ => Ok(()),
    }
}

/// What became of a phase.
pub struct Phase {
    /// The jobs that ran, in the file's order.
    pub done: Vec<Done>,
    /// Why it is not all it should be.
    pub failure: Option<Failure>,
    /// Whether later phases are not to run.
    pub ends_all: bool,
}

/// A job with what it is applied to.
struct Ready<'a> {
    index: usize,
    job: &'a Job,
    target: Target,
    spec: LoadSpec,
    flow: Option<Flow>,
    ended: AtomicBool,
}

/// Runs the jobs at the same time, each once those that it waits for have ended.
///
/// # Errors
/// A target cannot be opened. What fails later is part of the phase.
pub fn run(args: &LoadArgs, jobs: &[(usize, &Job)]) -> Result<Phase, Failure> {
    let ready = prepare(args, jobs)?;
    let ending = AtomicBool::new(false);
    let ends_all = AtomicBool::new(false);
    let bar = progress::timer(None, &format!("{} jobs at the same time", ready.len()));
    let results: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = ready
            .iter()
            .map(|job| {
                let (ready, ending, ends_all) = (&ready, &ending, &ends_all);
                scope.spawn(move || {
                    let result = job.wait(ready, ending).then(|| job.measure(ending));
                    job.ended.store(true, Ordering::SeqCst);
                    let failed = matches!(result, Some(Err(_)));
                    if let (Some(ends), Some(_)) = (job.job.schedule.ends, &result) {
                        ends_all.fetch_or(ends == EndsWith::All, Ordering::SeqCst);
                        ending.store(true, Ordering::SeqCst);
                    }
                    ending.fetch_or(failed, Ordering::SeqCst);
                    result
                })
            })
            .collect();
        while threads.iter().any(|thread| !thread.is_finished()) {
            bar.tick();
            thread::sleep(LOOK);
        }
        threads.into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    bar.finish_and_clear();
    let mut phase = Phase { done: Vec::new(), failure: None, ends_all: ends_all.into_inner() };
    for result in results {
        match result.map_err(|_| Failure::message(Kind::Other, "a job panicked: a defect of virtbench"))? {
            None => {}
            Some(Err(failure)) => phase.failure = phase.failure.or(Some(failure)),
            Some(Ok((done, failure))) => {
                phase.done.push(done);
                phase.failure = phase.failure.or(failure);
            }
        }
    }
    Ok(phase)
}

/// Opens the targets. Jobs that name the same one, opened the same way, share it: a device can be held once only.
fn prepare<'a>(args: &LoadArgs, jobs: &[(usize, &'a Job)]) -> Result<Vec<Ready<'a>>, Failure> {
    let mut opened: Vec<(&Path, bool, Target)> = Vec::new();
    let mut flows: BTreeMap<u64, Arc<FlowGroup>> = BTreeMap::new();
    let mut ready = Vec::new();
    for (index, job) in jobs {
        let key = (job.target.as_path(), job.load.direct);
        let known = opened.iter().find(|(path, direct, _)| (*path, *direct) == key);
        let target = match known {
            Some((_, _, target)) => target.clone(),
            None => {
                let same: Vec<&Job> = jobs
                    .iter()
                    .map(|(_, job)| *job)
                    .filter(|job| (job.target.as_path(), job.load.direct) == key)
                    .collect();
                let target = open::open_for(&args.shape, &same, Purpose::Load)?;
                opened.push((key.0, key.1, target.clone()));
                target
            }
        };
        let spec = job.on(&target);
        let flow = job.schedule.flow.map(|part| {
            let group = Arc::clone(flows.entry(part.id).or_default());
            // One that waits for another job joins when it starts: that job may be of its flow.
            if job.schedule.after.is_empty() {
                group.expect(u64::from(part.weight) * u64::from(spec.workers));
            }
            Flow { group, weight: part.weight, sleep_ns: part.sleep_ns }
        });
        ready.push(Ready { index: *index, job, target, spec, flow, ended: AtomicBool::new(false) });
    }
    Ok(ready)
}

impl Ready<'_> {
    /// Waits until the job can start; `false` if the phase ends before.
    fn wait(&self, all: &[Self], ending: &AtomicBool) -> bool {
        let over = || ending.load(Ordering::SeqCst) || interrupt::requested();
        let waits_for = |other: &Self| self.job.schedule.after.contains(&other.index);
        while all.iter().any(|other| waits_for(other) && !other.ended.load(Ordering::SeqCst)) {
            if over() {
                return false;
            }
            thread::sleep(LOOK);
        }
        let free = Instant::now();
        let delay = Duration::from_nanos(self.job.schedule.delay_ns);
        while let Some(left) = delay.checked_sub(free.elapsed()).filter(|left| !left.is_zero()) {
            if over() {
                return false;
            }
            thread::sleep(left.min(LOOK));
        }
        !over()
    }

    /// Measures the job; what it did not reach comes with it.
    fn measure(&self, ending: &AtomicBool) -> Result<(Done, Option<Failure>), Failure> {
        let ends = Ends::new(&self.job.schedule);
        let control = ends.control(self.spec.workers).in_flow(self.flow.clone());
        let (outcome, host) = measure_among(&self.spec, &self.target, control, |control| {
            ends.look(control);
            if ending.load(Ordering::SeqCst) {
                control.finish();
            }
        })?;
        let started_unix_ns = started_unix_ns(&outcome);
        let mut repetitions = Repetitions::once(outcome, host);
        let (note, failed) = ends.say();
        note.iter().chain(&failed).for_each(|note| repetitions.note(note));
        let name = self.job.name.clone();
        let failure = failed.map(|why| {
            let name = name.as_deref().unwrap_or("the job");
            Failure::message(Kind::Measured, format!("{name} {why}"))
        });
        Ok((Done { name, repetitions, settled: None, started_unix_ns }, failure))
    }
}

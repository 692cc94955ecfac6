//! Jobs that run at the same time, and phases one after another; what ends a job among others before its time.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_engine::{Control, Flow, FlowGroup, LiveSample, Target, monotonic_ns};
use virtbench_formats::{Ends as EndsWith, Schedule, SteadyEnd, SteadyMetric};
use virtbench_model::RepeatRule;
use virtbench_units::format_duration_ns;
use virtbench_workload::LoadSpec;

use super::measure::measure_among;
use super::perform::{self, Done, Purpose, started_unix_ns};
use super::repetitions::Repetitions;
use super::spec::{Job, Plan};
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
                let target = perform::open_for(&args.shape, &same, Purpose::Load)?;
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

/// Over how long the least rate must be reached, in nanoseconds.
const RATE_WINDOW_NS: u64 = 1_000_000_000;

/// Watches one job.
pub struct Ends {
    began_ns: u64,
    steady: Option<RefCell<Steady>>,
    least: Option<RefCell<Least>>,
}

struct Steady {
    rule: SteadyEnd,
    figures: VecDeque<f64>,
    last: (u64, LiveSample),
    reached_after_ns: Option<u64>,
}

struct Least {
    bytes_per_second: u64,
    last: (u64, LiveSample),
    fell_to: Option<u64>,
}

impl Ends {
    /// What the schedule asks for, from now on.
    pub fn new(schedule: &Schedule) -> Self {
        let began_ns = monotonic_ns();
        let last = (began_ns, LiveSample::default());
        let steady = schedule.steady.map(|rule| {
            RefCell::new(Steady {
                rule,
                figures: VecDeque::new(),
                last: last.clone(),
                reached_after_ns: None,
            })
        });
        let least = schedule
            .least_bytes_per_second
            .map(|bytes_per_second| RefCell::new(Least { bytes_per_second, last, fell_to: None }));
        Self { began_ns, steady, least }
    }

    /// A control that can be asked for what is watched.
    pub fn control(&self, workers: u32) -> Control {
        let watches = self.steady.is_some() || self.least.is_some();
        if watches { Control::with_live(workers) } else { Control::new(workers) }
    }

    /// Looks at the job, and ends it if it is to.
    pub fn look(&self, control: &Control) {
        let now_ns = monotonic_ns();
        let steady = self
            .steady
            .as_ref()
            .is_some_and(|steady| steady.borrow_mut().look(self.began_ns, now_ns, control));
        let too_slow = self.least.as_ref().is_some_and(|least| least.borrow_mut().look(now_ns, control));
        if steady || too_slow {
            control.finish();
        }
    }

    /// What is to be said of the job: how it ended, and why it failed if it has.
    pub fn say(&self) -> (Option<String>, Option<String>) {
        let steady = self.steady.as_ref().map(|steady| {
            let steady = steady.borrow();
            steady.reached_after_ns.map_or_else(
                || "its figures were not steady within its time".to_owned(),
                |after_ns| {
                    format!("its figures were steady after {}, which ended it", format_duration_ns(after_ns))
                },
            )
        });
        let failed = self.least.as_ref().and_then(|least| {
            let least = least.borrow();
            let fell_to = least.fell_to?;
            Some(format!(
                "reached {fell_to} B/s over a second; it asks for {} at least",
                least.bytes_per_second
            ))
        });
        (steady, failed)
    }
}

impl Steady {
    fn look(&mut self, began_ns: u64, now_ns: u64, control: &Control) -> bool {
        let (last_ns, last) = &self.last;
        if now_ns < began_ns + self.rule.ramp_ns {
            self.last = (now_ns, control.live());
            return false;
        }
        if now_ns < last_ns + self.rule.check_ns || self.reached_after_ns.is_some() {
            return false;
        }
        let sample = control.live();
        let (added, seconds) = (sample.since(last), (now_ns - last_ns) as f64 / 1e9);
        self.figures.push_back(match self.rule.figure {
            SteadyMetric::Iops => added.operations as f64 / seconds,
            SteadyMetric::Bandwidth => added.bytes as f64 / seconds,
            SteadyMetric::Latency => added.latency_sum_ns as f64 / added.operations.max(1) as f64,
        });
        self.last = (now_ns, sample);
        while self.figures.len() > self.rule.checks() {
            self.figures.pop_front();
        }
        let reached = self.rule.is_steady(self.figures.make_contiguous());
        self.reached_after_ns = reached.then(|| now_ns - began_ns);
        reached
    }
}

impl Least {
    /// As fio, the rate is looked at when something has completed, and over a second at least.
    fn look(&mut self, now_ns: u64, control: &Control) -> bool {
        let (last_ns, last) = &self.last;
        let sample = control.live();
        let added = sample.since(last);
        if added.operations == 0 || now_ns < last_ns + RATE_WINDOW_NS {
            return false;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rate = (added.bytes as f64 * 1e9 / (now_ns - last_ns) as f64) as u64;
        self.last = (now_ns, sample);
        if rate < self.bytes_per_second {
            self.fell_to.get_or_insert(rate);
            return true;
        }
        false
    }
}

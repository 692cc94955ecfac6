//! The study of a platform: a domain at a time, each by the runs of other studies. What was measured on another host or in other guests
//! than the run began with does not count.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use virtbench_lab::host_facts;
use virtbench_model::platform::{disks_of_run, samples_of_domain, times_of_run};
use virtbench_record::{
    Plan, PlatformDomain, PlatformPlan, PlatformRun, Provenance, Records, SamplesKey, SamplesMeasured,
};
use virtbench_runs::{LoadedRun, load_any_run, read_provenance};

use super::part::{HostWatch, run_part};
use crate::runner::event::Estimate;
use crate::runner::progress::{HostClock, Progress, nanoseconds};
use crate::runner::run::{Experiment, Run, RunEnd};
use crate::runner::sides::SidesSchedule;
use crate::runner::steps::{NoResult, Schedule, Steps, Study, Taken, run_study};
use crate::study_error::StudyError;

/// How often a repetition is measured that does not count.
const TRIES: u32 = 2;

/// Says what a run comes to, in a sentence.
pub type Sentence = fn(&Provenance, &Records) -> String;

/// A study of a platform.
#[derive(Debug, Clone)]
pub struct PlatformStudy {
    plan: PlatformPlan,
    program: PathBuf,
    sentence: Sentence,
}

impl PlatformStudy {
    /// One by a plan, whose runs are those of this program; `sentence` says what one comes to.
    #[must_use]
    pub fn new(plan: PlatformPlan, program: PathBuf, sentence: Sentence) -> Self {
        Self { plan, program, sentence }
    }

    fn domain(&self, name: &str) -> Result<PlatformDomain, NoResult> {
        let found = self.plan.domains.iter().find(|domain| domain.name == name);
        found.cloned().ok_or_else(|| StudyError::input(format!("{name} is no domain: a defect")).into())
    }
}

impl Experiment for PlatformStudy {
    const NAME: &'static str = "platform";

    fn estimate(&self) -> Estimate {
        SidesSchedule::new(Plan::Platform(self.plan.clone())).estimate()
    }

    /// The runs of the domains lie in the run folder, and are gone on with where one has begun.
    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        run_study(&SidesSchedule::new(Plan::Platform(self.plan.clone())), &mut self.clone(), run)
    }
}

impl PlatformStudy {
    fn once(
        &self,
        key: &SamplesKey,
        folder: &Path,
        void: &Cell<bool>,
        progress: &mut Progress<'_>,
    ) -> Result<Taken<SamplesMeasured>, NoResult> {
        let begun = Instant::now();
        let domain = self.domain(&key.side)?;
        if let Some(why) = &domain.left_out {
            return Err(NoResult::Unavailable(why.clone()));
        }
        let (watch, clock) = (HostWatch::begin(), HostClock::now());
        let mut runs: Vec<(String, LoadedRun<Records>)> = Vec::new();
        // In turn from one end and from the other, so that what changes slowly on a host is in both alike.
        let turn: Vec<&PlatformRun> = match key.repetition % 2 {
            0 => domain.runs.iter().collect(),
            _ => domain.runs.iter().rev().collect(),
        };
        for run in turn {
            let folder = folder.join(run.folder(&key.side, key.repetition));
            run_part(&self.program, run, &folder, Duration::from_nanos(domain.takes_ns), progress)?;
            runs.push((run.name.clone(), read(&folder)?));
        }
        if key.repetition % 2 == 1 {
            runs.reverse();
        }
        let of_runs: Vec<(String, &Provenance, &Records)> =
            runs.iter().map(|(name, run)| (name.clone(), &run.provenance, &run.records)).collect();
        let provenances: Vec<&Provenance> = of_runs.iter().map(|(_, provenance, _)| *provenance).collect();
        let changed = clock.jumped().or_else(|| change(folder, &domain, key.repetition, &provenances));
        if let Some(why) = changed {
            void.set(true);
            let kept = set_aside(folder, &key.side, key.repetition)?;
            return Err(NoResult::failed(format!(
                "it does not count: {why}; what was measured is in {}",
                kept.display()
            )));
        }
        let (host, mut observed) = watch.end();
        let samples = samples_of_domain(&of_runs, domain.absolute).map_err(NoResult::failed)?;
        observed.disks = of_runs.iter().flat_map(|(_, run, records)| disks_of_run(run, records)).collect();
        let times = of_runs.iter().flat_map(|(.., records)| times_of_run(records)).collect();
        let guest = runs.iter().find_map(|(_, run)| run.provenance.guest.clone());
        // Of two runs neither says how they compare.
        let notes = match of_runs.as_slice() {
            [(_, provenance, records)] => vec![(self.sentence)(provenance, records)],
            _ => Vec::new(),
        };
        let elapsed_ns = nanoseconds(begun.elapsed());
        Ok(Taken::of(
            SamplesMeasured { samples, times, elapsed_ns, host, observed: Some(observed), notes },
            guest,
        ))
    }
}

impl Study for PlatformStudy {
    type Schedule = SidesSchedule;

    fn measure(
        &mut self,
        first: SamplesKey,
        steps: &mut Steps<'_, '_, SidesSchedule>,
    ) -> Result<(), StudyError> {
        let folder = steps.folder().to_owned();
        // What does not count is no evidence, stands in the record with its reason, and is tried once more.
        for _ in 0..TRIES {
            let void = Cell::new(false);
            let once = |progress: &mut Progress<'_>| {
                progress.doing(&format!("{}: repetition {}", first.side, first.repetition + 1));
                self.once(&first, &folder, &void, progress)
            };
            steps.take(first.clone(), once)?;
            if !void.get() {
                break;
            }
        }
        Ok(())
    }
}

fn read(folder: &Path) -> Result<LoadedRun<Records>, NoResult> {
    load_any_run(folder).map_err(|error| NoResult::failed(error.to_string()))
}

/// What changed since the platform's run began, or since an earlier repetition of the domain, in words. `runs` are those of the domain's studies,
/// in the order of the plan.
pub(super) fn change(
    folder: &Path,
    domain: &PlatformDomain,
    repetition: u32,
    runs: &[&Provenance],
) -> Option<String> {
    let begun = read_provenance(folder).ok()?;
    let of_host = runs.iter().map(|run| &run.host).find_map(|host| host.change_since(&begun.host));
    let now = || host_facts(folder).change_since(&begun.host);
    let of_guests = || {
        let pairs = domain.runs.iter().zip(runs);
        pairs.into_iter().find_map(|(run, measured)| {
            let guest = measured.guest.as_ref()?;
            let earlier = (0..repetition).map(|earlier| folder.join(run.folder(&domain.name, earlier)));
            let earlier = earlier.filter_map(|folder| read_provenance(&folder).ok());
            earlier.filter_map(|run| run.guest).find_map(|before| guest.change_since(&before))
        })
    };
    let of_versions = || {
        let other = runs.iter().find(|run| run.version != begun.version)?;
        Some(format!("virtbench was {} before and is {} now", begun.version, other.version))
    };
    of_host.or_else(now).or_else(of_versions).or_else(of_guests)
}

/// Moves the run folders of a repetition aside, so that the next try measures anew and they can still be read.
///
/// # Errors
/// They cannot be moved.
pub(super) fn set_aside(folder: &Path, domain: &str, repetition: u32) -> Result<PathBuf, StudyError> {
    let own = folder.join(domain);
    let number = repetition + 1;
    let (from, mut times) = (own.join(number.to_string()), 1);
    let aside = |times: u32| own.join(format!("{number}-void-{times}"));
    while aside(times).exists() {
        times += 1;
    }
    let to = aside(times);
    std::fs::rename(&from, &to)
        .map_err(|source| StudyError::input(format!("{} cannot be moved: {source}", from.display())))?;
    Ok(to)
}

#[cfg(test)]
#[path = "study_tests.rs"]
mod tests;

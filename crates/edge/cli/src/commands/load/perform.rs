//! A job from its target to its results.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use virtbench_formats::results::JobResult;
use virtbench_record::LoadOutcome;

use super::job::Job;
use super::measure::measure_watched;
use super::open::Purpose;
use super::repetitions::Repetitions;
use super::settle::{Settled, settle};
use crate::args::LoadArgs;
use crate::exit::Failure;

/// A job that was measured.
pub struct Done {
    /// Its name, if it comes from a file.
    pub name: Option<String>,
    /// What was measured, as often as it was asked for.
    pub repetitions: Repetitions,
    /// How the target settled before, where that was asked for.
    pub settled: Option<Settled>,
    /// When measuring began in the repetition that stands for all, in nanoseconds since 1970.
    pub started_unix_ns: u64,
}

/// Opens the job's target, has it settle if asked to, and measures.
pub fn perform(args: &LoadArgs, job: &Job) -> Result<Done, Failure> {
    let (target, spec) = job.open(&args.shape, Purpose::Load)?;
    let rule = args.repeat.steady;
    let settled =
        rule.map(|rule| settle(&spec, &target, rule, args.repeat.steady_limit, args.live)).transpose()?;
    let mut started = Vec::new();
    let mut repetitions = Repetitions::measure(args.repeat.rule(), &spec, |spec| {
        let measured = measure_watched(spec, &target, args.live, |_| {})?;
        started.push(started_unix_ns(&measured.0));
        Ok(measured)
    })?;
    if let Some(note) = settled.as_ref().and_then(Settled::note) {
        repetitions.note(&note);
    }
    let started_unix_ns = started.get(repetitions.median_index()).copied().unwrap_or(0);
    Ok(Done { name: job.name.clone(), repetitions, settled, started_unix_ns })
}

/// When the measuring that has just ended began.
pub fn started_unix_ns(outcome: &LoadOutcome) -> u64 {
    let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started = ended.saturating_sub(Duration::from_nanos(outcome.elapsed_ns));
    u64::try_from(started.as_nanos()).unwrap_or(0)
}

impl Done {
    /// The job as exports see it: the repetition that stands for all.
    pub fn result(&self) -> JobResult<'_> {
        let (outcome, host) = self.repetitions.median();
        let name = self.name.as_deref().unwrap_or("load");
        JobResult { name, outcome, host: Some(host), started_unix_ns: self.started_unix_ns }
    }
}

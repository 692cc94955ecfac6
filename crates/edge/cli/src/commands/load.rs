//! `virtbench load`

mod export;
mod spec;
mod table;

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::ArgMatches;
use serde::Serialize;
use virtbench_engine::{Control, EngineError, Target, TargetError, TargetRequest, monotonic_ns, run};
use virtbench_formats::Remark;
use virtbench_formats::results::JobResult;
use virtbench_lab::CpuSample;
use virtbench_record::{HostUse, LoadOutcome};
use virtbench_units::format_bytes;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use crate::args::LoadArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::{interrupt, progress};
use spec::Plan;

/// Size of a file that is made because nothing else was said, in bytes.
const DEFAULT_SIZE_BYTES: u64 = 1 << 30;

/// What `--json` prints of a job.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
    #[serde(flatten)]
    outcome: LoadOutcome,
    host_cpu_percent: f64,
    host_cpu: &'a HostUse,
    iops_per_cpu_percent: Option<f64>,
    kilobytes_per_second_per_cpu_percent: Option<f64>,
}

/// What `--json` prints for a file of jobs.
#[derive(Serialize)]
struct Reports<'a> {
    jobs: Vec<Report<'a>>,
    notes: &'a [String],
    ignored: &'a [Remark],
}

/// A load and what it is applied to.
struct Job {
    /// Its name, if it comes from a file.
    name: Option<String>,
    target: PathBuf,
    size_bytes: Option<u64>,
    /// The load. Its region and whether it is direct follow from the target.
    load: LoadSpec,
}

/// A job that was measured.
struct Done {
    name: Option<String>,
    outcome: LoadOutcome,
    host: HostUse,
    started_unix_ns: u64,
}

impl Done {
    fn result(&self) -> JobResult<'_> {
        let Self { name, outcome, host, started_unix_ns } = self;
        let name = name.as_deref().unwrap_or("load");
        JobResult { name, outcome, host: Some(host), started_unix_ns: *started_unix_ns }
    }

    fn report(&self) -> Report<'_> {
        let Self { name, outcome, host, .. } = self;
        let mut outcome = outcome.clone();
        for stats in [&mut outcome.total, &mut outcome.read, &mut outcome.write] {
            stats.histogram = None;
        }
        Report {
            job: name.as_deref(),
            host_cpu_percent: host.cpu_percent,
            host_cpu: host,
            iops_per_cpu_percent: host.per_cpu_percent(outcome.total.iops),
            kilobytes_per_second_per_cpu_percent: host.per_cpu_percent(outcome.total.bytes_per_second / 1e3),
            outcome,
        }
    }
}

/// Applies the load, or the jobs of a file one after another, and prints what came of it.
pub fn execute(args: &LoadArgs, matches: Option<&ArgMatches>) -> Outcome {
    let plan = plan(args, matches)?;
    if !args.json {
        plan.notes.iter().for_each(|note| eprintln!("note: {note}"));
        plan.ignored.iter().for_each(|remark| eprintln!("ignored: {remark}"));
    }
    let mut done = Vec::new();
    let ran = plan.jobs.iter().try_for_each(|job| {
        let job = perform(args, job)?;
        if !args.json {
            let mut out = std::io::stdout().lock();
            if let Some(name) = &job.name {
                writeln!(out, "[{name}] on {}", job.outcome.target.path)?;
            }
            table::write(&mut out, &job.outcome, &job.host)?;
        }
        let verdict = verdict(&job.outcome);
        done.push(job);
        verdict
    });
    // Whatever ended the jobs, those that were measured are reported.
    if !done.is_empty() {
        if args.json {
            let mut out = std::io::stdout().lock();
            let mut jobs: Vec<Report<'_>> = done.iter().map(Done::report).collect();
            match (args.spec.spec.is_some(), jobs.pop()) {
                (false, Some(only)) => serde_json::to_writer(&mut out, &only)?,
                (_, last) => {
                    jobs.extend(last);
                    let reports = Reports { jobs, notes: &plan.notes, ignored: &plan.ignored };
                    serde_json::to_writer(&mut out, &reports)?;
                }
            }
            writeln!(out)?;
        }
        export::write(&args.spec.export, &done)?;
    }
    ran
}

/// The load that the options make, or the jobs of the file.
fn plan(args: &LoadArgs, matches: Option<&ArgMatches>) -> Result<Plan, Failure> {
    let load = given(args);
    load.access.validate().map_err(|error| Failure::new(Kind::Usage, error))?;
    if let Some(path) = &args.spec.spec {
        return spec::read(path, args, &load, matches);
    }
    let target = args.target.clone().unwrap_or_default();
    let job = Job { name: None, target, size_bytes: args.size, load };
    Ok(Plan { jobs: vec![job], notes: Vec::new(), ignored: Vec::new() })
}

/// The load that the options make.
fn given(args: &LoadArgs) -> LoadSpec {
    LoadSpec {
        outstanding: args.outstanding,
        workers: args.workers,
        ramp_ns: args.ramp,
        time_ns: args.time,
        interval_ns: args.interval,
        engine: args.engine.into(),
        direct: !args.buffered,
        seed: args.seed.unwrap_or_else(drawn_seed),
        ..LoadSpec::new(access(args), args.size.unwrap_or(DEFAULT_SIZE_BYTES))
    }
}

/// Opens the target and applies the load to it.
fn perform(args: &LoadArgs, job: &Job) -> Result<Done, Failure> {
    let target = open(args, job)?;
    let spec = LoadSpec {
        direct: target.facts().direct,
        region_bytes: job.size_bytes.unwrap_or(target.facts().size_bytes),
        ..job.load.clone()
    };
    let (outcome, host) = measure(&spec, &target)?;
    let ended = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let started = ended.saturating_sub(Duration::from_nanos(outcome.elapsed_ns));
    let started_unix_ns = u64::try_from(started.as_nanos()).unwrap_or(0);
    Ok(Done { name: job.name.clone(), outcome, host, started_unix_ns })
}

fn access(args: &LoadArgs) -> AccessSpec {
    if !args.mix.is_empty() {
        return AccessSpec { lines: args.mix.clone() };
    }
    AccessSpec::single(AccessLine {
        delay_ns: args.think,
        burst: args.burst,
        align_bytes: args.align.unwrap_or(args.bs),
        ..AccessLine::new(args.bs, args.read, args.random)
    })
}

/// A seed nobody chose. It is reported, so the run can still be repeated.
fn drawn_seed() -> u64 {
    monotonic_ns() ^ u64::from(std::process::id()) << 32
}

fn open(args: &LoadArgs, job: &Job) -> Result<Target, Failure> {
    let exists = fs::symlink_metadata(&job.target).is_ok();
    let request = TargetRequest {
        path: job.target.clone(),
        size_bytes: job.size_bytes.or((!exists).then_some(DEFAULT_SIZE_BYTES)),
        direct: job.load.direct,
        reads: job.load.access.reads(),
        writes: job.load.access.writes(),
        allow_overwrite: args.allow_overwrite,
    };
    let bar = progress::bar(0, "writing the test file");
    let target = Target::open(&request, |written, total| {
        bar.set_length(total);
        bar.set_position(written);
        !interrupt::requested()
    });
    bar.finish_and_clear();
    target.map_err(|error| match error {
        TargetError::Interrupted(_) => Failure::new(Kind::Interrupted, error),
        error => Failure::new(Kind::Target, error),
    })
}

/// Runs the load, showing progress, and samples the host's CPU use over the measuring time.
fn measure(spec: &LoadSpec, target: &Target) -> Result<(LoadOutcome, HostUse), Failure> {
    let control = Arc::new(Control::new(spec.workers));
    let stopper = Arc::clone(&control);
    interrupt::on_request(move || stopper.stop());
    let bar = progress::timer(spec.ramp_ns + spec.time_ns, "measuring");
    let began = Instant::now();
    let outcome = thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut begin = None;
            let outcome = run(spec, target, &control, 0, |_| begin = Some(CpuSample::take()));
            (outcome, begin, CpuSample::take())
        });
        let mut before = 0;
        while !load.is_finished() {
            thread::sleep(Duration::from_millis(100).min(began.elapsed() / 4 + Duration::from_millis(1)));
            let now = control.completed();
            progress::tick(&bar, began.elapsed());
            bar.set_message(format!("{now} operations, {} more", now - before));
            before = now;
        }
        load.join()
    });
    bar.finish_and_clear();
    let (outcome, begin, end) =
        outcome.map_err(|_| Failure::message(Kind::Other, "the load panicked: a defect of virtbench"))?;
    let outcome = outcome.map_err(|error| {
        let kind = match error {
            EngineError::Load(_) => Kind::Usage,
            EngineError::Misfit(_) => Kind::Target,
            EngineError::Resource { .. } => Kind::Environment,
        };
        Failure::new(kind, error)
    })?;
    let end = end?;
    let begin = begin.transpose()?.unwrap_or_else(|| end.clone());
    Ok((outcome, begin.until(&end)))
}

/// Results were printed; the exit code still tells whether to trust them.
fn verdict(outcome: &LoadOutcome) -> Outcome {
    if interrupt::requested() {
        return Err(interrupt::failure("the figures cover the time until then"));
    }
    if outcome.errors > 0 || outcome.interrupted {
        let kinds: Vec<String> =
            outcome.error_kinds.iter().map(|(name, count)| format!("{count} x {name}")).collect();
        let message = format!(
            "operations failed on {} ({}): {}",
            outcome.target.path,
            format_bytes(outcome.target.size_bytes),
            kinds.join(", ")
        );
        return Err(Failure::message(Kind::Measured, message));
    }
    Ok(())
}

//! The load that the options make, or the jobs of the file that they name, or the load that replays a trace.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use clap::ArgMatches;
use clap::parser::ValueSource;
use virtbench_engine::{Target, monotonic_ns};
use virtbench_formats::Schedule;
use virtbench_formats::trace::{Trace, read_trace};
use virtbench_units::format_duration_ns;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec, MAX_PHASE_NS, Recording};

use super::perform::Purpose;
use super::spec::{self, Job, Plan};
use crate::args::{LoadArgs, ShapeArgs};
use crate::exit::{Failure, Kind};

/// What the options ask for.
///
/// # Errors
/// One of the jobs makes no sense: known before a file is made or the first job has run for an hour.
pub fn plan(args: &LoadArgs, matches: Option<&ArgMatches>) -> Result<Plan, Failure> {
    let plan = match (args.spec.is_given(), &args.trace.trace) {
        (true, _) => spec::read(args, &given(args), matches)?,
        (false, Some(path)) => read(path, args, given(args), matches)?,
        (false, None) => {
            Plan { jobs: vec![own(&args.shape, given(args))], notes: Vec::new(), ignored: Vec::new() }
        }
    };
    plan.jobs.iter().try_for_each(Job::check)?;
    Ok(plan.reach_together())
}

/// Opens the target of the load that the options make, without a file of jobs.
pub fn prepare(args: &ShapeArgs) -> Result<(Target, LoadSpec), Failure> {
    let job = own(args, shape(args));
    job.check()?;
    job.open(args, Purpose::Load)
}

/// Opens the target of the load that the options make, to be read only: what that load has written.
pub fn prepare_check(args: &ShapeArgs) -> Result<(Target, LoadSpec), Failure> {
    let job = own(args, LoadSpec { verify: true, ..shape(args) });
    job.check()?;
    job.open(args, Purpose::Check)
}

fn own(args: &ShapeArgs, load: LoadSpec) -> Job {
    let target = args.target.clone().unwrap_or_default();
    Job {
        name: None,
        target,
        size_bytes: args.common.size,
        later_bytes: None,
        group: 0,
        schedule: Schedule::default(),
        load,
    }
}

/// The load that the options make, as far as it is known before the target is.
pub fn given(args: &LoadArgs) -> LoadSpec {
    LoadSpec { rate: args.apply.rate(), ..shape(&args.shape) }
}

fn shape(args: &ShapeArgs) -> LoadSpec {
    args.options.complete(LoadSpec {
        outstanding: args.common.outstanding,
        workers: args.common.workers,
        ramp_ns: args.ramp,
        time_ns: args.time,
        interval_ns: args.interval,
        engine: args.common.engine.into(),
        direct: !args.common.buffered,
        seed: args.common.seed.unwrap_or_else(drawn_seed),
        ..LoadSpec::new(access(args), u64::MAX)
    })
}

fn access(args: &ShapeArgs) -> AccessSpec {
    if !args.mix.is_empty() {
        let lines = args.mix.iter().cloned().map(|line| args.options.refine(line));
        return AccessSpec { lines: lines.collect() };
    }
    AccessSpec::single(args.options.refine(AccessLine {
        delay_ns: args.think,
        burst: args.burst,
        align_bytes: args.align.unwrap_or(args.bs),
        ..AccessLine::new(args.bs, args.read, args.random)
    }))
}

/// A seed nobody chose. It is reported, so the run can still be repeated.
pub fn drawn_seed() -> u64 {
    monotonic_ns() ^ u64::from(std::process::id()) << 32
}

/// How long a trace may take that is replayed as fast as possible and without --time.
const MAX_UNPACED_NS: u64 = 24 * 3_600_000_000_000;

/// Reads a trace's file.
///
/// # Errors
/// It cannot be read, with the line.
pub fn read_file(path: &Path) -> Result<Trace, Failure> {
    let file = File::open(path).map_err(|error| refused(path, format!("cannot be opened: {error}")))?;
    read_trace(BufReader::new(file)).map_err(|error| refused(path, error.to_string()))
}

fn refused(path: &Path, why: String) -> Failure {
    Failure::message(Kind::Usage, format!("--trace {}: {why}", path.display()))
}

/// Reads the trace into the load that the options make.
///
/// # Errors
/// The file cannot be read, with the line; or it would take longer than a week.
pub fn read(
    path: &Path,
    args: &LoadArgs,
    given: LoadSpec,
    matches: Option<&ArgMatches>,
) -> Result<Plan, Failure> {
    let name = path.display().to_string();
    let trace = read_file(path)?;
    let recording = Recording::new(name.clone(), args.trace.pace, trace.ops);
    let explicit = |name: &str| {
        matches.is_some_and(|matches| matches.value_source(name) == Some(ValueSource::CommandLine))
    };
    let whole_ns = match recording.paced_length_ns() {
        None => MAX_UNPACED_NS,
        // What waits when the last operation is due is given time to complete.
        Some(length_ns) => length_ns.saturating_add(given.timeout_ns),
    };
    if !explicit("time") && whole_ns > MAX_PHASE_NS {
        let length = format_duration_ns(whole_ns);
        return Err(refused(
            path,
            format!("it takes {length} at this pace, longer than a week: raise --pace or give --time"),
        ));
    }
    let load = LoadSpec {
        access: recording.access(),
        ramp_ns: if explicit("ramp") { given.ramp_ns } else { 0 },
        time_ns: if explicit("time") { given.time_ns } else { whole_ns },
        trace: Some(recording),
        ..given
    };
    let target = args.shape.target.clone().unwrap_or_default();
    Ok(Plan {
        jobs: vec![Job {
            name: None,
            target,
            size_bytes: args.shape.common.size,
            later_bytes: None,
            group: 0,
            schedule: Schedule::default(),
            load,
        }],
        notes: trace.notes,
        ignored: Vec::new(),
    })
}

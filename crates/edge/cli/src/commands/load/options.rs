//! The load that the options make, or the jobs of the file that they name.

use clap::ArgMatches;
use virtbench_engine::{Target, monotonic_ns};
use virtbench_formats::Schedule;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::job::{Job, Plan};
use super::open::Purpose;
use super::{spec, trace};
use crate::args::{LoadArgs, ShapeArgs};
use crate::exit::Failure;

/// What the options ask for.
///
/// # Errors
/// One of the jobs makes no sense: known before a file is made or the first job has run for an hour.
pub fn plan(args: &LoadArgs, matches: Option<&ArgMatches>) -> Result<Plan, Failure> {
    let plan = match (args.spec.is_given(), &args.trace.trace) {
        (true, _) => spec::read(args, &given(args), matches)?,
        (false, Some(path)) => trace::read(path, args, given(args), matches)?,
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

//! What is to be done: the load that the options make, or the jobs of a file.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use virtbench_engine::{Target, monotonic_ns};
use virtbench_formats::{Remark, Schedule};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::open::{self, Purpose};
use super::{spec, trace};
use crate::args::{LoadArgs, ShapeArgs};
use crate::exit::{Failure, Kind};

/// A file made for a trace ends with a whole sector of any disk, in bytes.
const SECTOR_BYTES: u64 = 4096;

/// A load and what it is applied to.
pub struct Job {
    /// Its name, if it comes from a file.
    pub name: Option<String>,
    /// Where the load is applied.
    pub target: PathBuf,
    /// How much of the target is used, in bytes; all of it where nobody says.
    pub size_bytes: Option<u64>,
    /// The phase it belongs to: jobs of one run at the same time.
    pub group: u32,
    /// When it starts in that and what ends it.
    pub schedule: Schedule,
    /// The load. Its region and whether it is direct follow from the target.
    pub load: LoadSpec,
}

/// The jobs and what to say about them.
pub struct Plan {
    /// The jobs, in the order of their phases.
    pub jobs: Vec<Job>,
    /// What differs from the tool that a file was written for.
    pub notes: Vec<String>,
    /// What was left out because it cannot be honoured.
    pub ignored: Vec<Remark>,
}

/// The load that the options make, or the jobs of the file that they name.
///
/// # Errors
/// One of the jobs makes no sense: known before a file is made or the first job has run for an hour.
pub fn plan(args: &LoadArgs, matches: Option<&ArgMatches>) -> Result<Plan, Failure> {
    let plan = match (&args.spec.spec, &args.trace.trace) {
        (Some(path), _) => spec::read(path, args, &given(args), matches)?,
        (None, Some(path)) => trace::read(path, args, given(args), matches)?,
        (None, None) => {
            Plan { jobs: vec![own(&args.shape, given(args))], notes: Vec::new(), ignored: Vec::new() }
        }
    };
    plan.jobs.iter().try_for_each(Job::check)?;
    Ok(plan)
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
    Job { name: None, target, size_bytes: args.common.size, group: 0, schedule: Schedule::default(), load }
}

impl Job {
    fn check(&self) -> Result<(), Failure> {
        let region_bytes = self.size_bytes.unwrap_or(u64::MAX);
        LoadSpec { region_bytes, ..self.load.clone() }.validate().map_err(|error| match &self.name {
            Some(name) => Failure::message(Kind::Usage, format!("job {name:?}: {error}")),
            None => Failure::new(Kind::Usage, error),
        })
    }

    /// How much of the target is asked for, in bytes. What is made for a trace, and nothing at all, are as
    /// large as the trace needs.
    pub fn wanted_bytes(&self) -> Option<u64> {
        let extent_bytes =
            self.load.trace.as_ref().map(|trace| trace.extent_bytes.next_multiple_of(SECTOR_BYTES));
        let is_new = || self.target == Path::new("null") || !self.target.exists();
        self.size_bytes.or(extent_bytes.filter(|_| is_new()))
    }

    /// How far into the target the load reaches, in bytes, where that is known.
    pub fn reach_bytes(&self) -> Option<u64> {
        let region_bytes = self.wanted_bytes()?;
        Some(LoadSpec { region_bytes, ..self.load.clone() }.end_bytes())
    }

    /// Opens the target; what depends on it becomes part of the load.
    pub fn open(&self, args: &ShapeArgs, purpose: Purpose) -> Result<(Target, LoadSpec), Failure> {
        let target = open::open(args, self, purpose)?;
        let spec = self.on(&target);
        Ok((target, spec))
    }

    /// The load with what depends on the target.
    pub fn on(&self, target: &Target) -> LoadSpec {
        let rest_bytes = target.facts().size_bytes.saturating_sub(self.load.start_bytes);
        LoadSpec {
            direct: target.facts().direct,
            region_bytes: self.wanted_bytes().unwrap_or(rest_bytes),
            ..self.load.clone()
        }
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

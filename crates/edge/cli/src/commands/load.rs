//! `virtbench load`

mod check;
mod repetitions;
mod settle;
mod table;

use std::fs;
use std::io::Write;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use serde::Serialize;
use virtbench_engine::{
    Control, EngineError, Target, TargetError, TargetName, TargetRequest, monotonic_ns, run,
};
use virtbench_lab::CpuSample;
use virtbench_record::{HostUse, LoadOutcome};
use virtbench_units::format_bytes;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use self::repetitions::Repetitions;
use self::settle::{Settled, settle};
use crate::args::LoadArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::{interrupt, progress};

/// Size of a file that is made because nothing else was said, in bytes.
const DEFAULT_SIZE_BYTES: u64 = 1 << 30;

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    outcome: &'a LoadOutcome,
    host_cpu_percent: f64,
    host_cpu: &'a HostUse,
    iops_per_cpu_percent: Option<f64>,
    kilobytes_per_second_per_cpu_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steady: Option<&'a Settled>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    repeated: Option<repetitions::Summary>,
}

/// Applies the load and prints what came of it.
pub fn execute(args: &LoadArgs) -> Outcome {
    let (target, spec) = prepare(args)?;
    if args.options.verify_only {
        return check::execute(&spec, &target, args.json);
    }
    let settled = match args.repeat.steady {
        Some(rule) => Some(settle(&spec, &target, rule, args.repeat.steady_limit)?),
        None => None,
    };
    let mut repetitions = Repetitions::measure(args.repeat.rule(), &spec, |spec| measure(spec, &target))?;
    if let Some(note) = settled.as_ref().and_then(Settled::note) {
        repetitions.note(&note);
    }
    let repeated = repetitions.summary();
    let (outcome, host) = repetitions.median();
    let mut out = std::io::stdout().lock();
    if args.json {
        let mut outcome = outcome.clone();
        for stats in [&mut outcome.total, &mut outcome.read, &mut outcome.write] {
            stats.histogram = None;
        }
        let report = Report {
            outcome: &outcome,
            host_cpu_percent: host.cpu_percent,
            host_cpu: host,
            iops_per_cpu_percent: host.per_cpu_percent(outcome.total.iops),
            kilobytes_per_second_per_cpu_percent: host.per_cpu_percent(outcome.total.bytes_per_second / 1e3),
            steady: settled.as_ref(),
            repeated,
        };
        serde_json::to_writer(&mut out, &report)?;
        writeln!(out)?;
    } else {
        table::write(&mut out, outcome, host)?;
        if let Some(settled) = &settled {
            writeln!(out, "{settled}")?;
        }
        if let Some(repeated) = &repeated {
            write!(out, "{repeated}")?;
        }
    }
    repetitions.outcomes().try_for_each(verdict)
}

/// Opens the target and puts the load together.
pub(super) fn prepare(args: &LoadArgs) -> Result<(Target, LoadSpec), Failure> {
    let access = access(args);
    access.validate().map_err(|error| Failure::new(Kind::Usage, error))?;
    let target = open(args, &access)?;
    let spec = args.options.complete(LoadSpec {
        outstanding: args.outstanding,
        workers: args.workers,
        ramp_ns: args.ramp,
        time_ns: args.time,
        interval_ns: args.interval,
        engine: args.engine.into(),
        direct: target.facts().direct,
        seed: args.seed.unwrap_or_else(drawn_seed),
        ..LoadSpec::new(access, args.size.unwrap_or(target.facts().size_bytes))
    });
    Ok((target, spec))
}

fn access(args: &LoadArgs) -> AccessSpec {
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
pub(super) fn drawn_seed() -> u64 {
    monotonic_ns() ^ u64::from(std::process::id()) << 32
}

fn open(args: &LoadArgs, access: &AccessSpec) -> Result<Target, Failure> {
    let target = open_request(TargetRequest {
        path: args.target.clone(),
        size_bytes: args.size,
        direct: !args.buffered,
        reads: access.reads(),
        writes: access.writes() && !args.options.verify_only,
        allow_overwrite: args.allow_overwrite,
    })?;
    Ok(match &args.fault {
        Some(faults) => target.with_faults(faults.clone()),
        None => target,
    })
}

/// Opens a target, which is made, with a size nobody chose if need be, where there is none.
pub(super) fn open_request(mut request: TargetRequest) -> Result<Target, Failure> {
    let name = TargetName::parse(&request.path).map_err(|error| Failure::new(Kind::Usage, error))?;
    if name.is_made() && fs::symlink_metadata(&request.path).is_err() {
        request.size_bytes.get_or_insert(DEFAULT_SIZE_BYTES);
    }
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
pub(super) fn measure(spec: &LoadSpec, target: &Target) -> Result<(LoadOutcome, HostUse), Failure> {
    measure_watched(spec, target, |_| {})
}

/// As [`measure`], and calls `look` with the load's control every 100 ms or so while it runs.
fn measure_watched(
    spec: &LoadSpec,
    target: &Target,
    mut look: impl FnMut(&Control),
) -> Result<(LoadOutcome, HostUse), Failure> {
    let control = Arc::new(Control::new(spec.workers));
    let stopper = Arc::downgrade(&control);
    interrupt::on_request(move || {
        if let Some(control) = stopper.upgrade() {
            control.stop();
        }
    });
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
            look(&control);
        }
        load.join()
    });
    bar.finish_and_clear();
    let (outcome, begin, end) =
        outcome.map_err(|_| Failure::message(Kind::Other, "the load panicked: a defect of virtbench"))?;
    let outcome = outcome.map_err(refusal)?;
    let end = end?;
    let begin = begin.transpose()?.unwrap_or_else(|| end.clone());
    Ok((outcome, begin.until(&end)))
}

/// Why a load could not be applied.
fn refusal(error: EngineError) -> Failure {
    let kind = match error {
        EngineError::Load(_) => Kind::Usage,
        EngineError::Misfit(_) => Kind::Target,
        EngineError::Resource { .. } => Kind::Environment,
    };
    Failure::new(kind, error)
}

/// Results were printed; the exit code still tells whether to trust them.
fn verdict(outcome: &LoadOutcome) -> Outcome {
    if interrupt::requested() {
        return Err(interrupt::failure("the figures cover the time until then"));
    }
    if let Some(found) = &outcome.verify {
        check::verdict(found, &outcome.target.path)?;
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

//! What all studies do: the plan, the run folder, progress, failures, and the last words.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indicatif::ProgressBar;
use serde_json::Value;
use virtbench_lab::host_facts;
use virtbench_record::{Conclusion, FORMAT, Plan, Provenance, Record, RunKind};
use virtbench_study::{
    DiskError, FolderError, Grid, RunFolder, StudyError, check_plan, read_provenance, schedule,
};
use virtbench_units::format_duration_ns;

use crate::args::RunArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::tell;
use crate::{log, progress};

/// What a step takes beyond its ramp-up and measuring time, in nanoseconds: for the first estimate.
const STEP_OVERHEAD_NS: u64 = 120_000_000;
/// What QEMU needs beside a guest's memory, in bytes: measured, 60 to 90 MiB under TCG.
pub const QEMU_BYTES: u64 = 128 << 20;

/// The run folder: the one named, or one that tells study and time.
pub fn folder_path(out: Option<&Path>, study: &str) -> PathBuf {
    out.map(Path::to_owned).unwrap_or_else(|| {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let stamp = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(since)).to_string();
        PathBuf::from(format!("virtbench-{study}-{}", stamp.replace([':', 'Z'], "").replace('T', "-")))
    })
}

/// What a run sets out to measure, and where.
pub fn provenance(
    kind: RunKind,
    args: &RunArgs,
    grid: Grid,
    environments: Vec<String>,
    out: &Path,
) -> Result<Provenance, Failure> {
    let plan = Plan {
        grid: grid.name,
        blocks_bytes: grid.blocks_bytes,
        read_percents: grid.read_percents,
        random_percents: grid.random_percents,
        repetitions: args.repetitions.unwrap_or(grid.repetitions),
        outstanding: args.outstanding,
        workers: args.workers,
        ramp_ns: args.ramp.unwrap_or(grid.ramp_ns),
        time_ns: args.time.unwrap_or(grid.time_ns),
        size_bytes: args.size,
        environments,
        seed: args.seed,
    };
    check_plan(&plan).map_err(|error| Failure::new(Kind::Usage, error))?;
    Ok(provenance_of(kind, plan, target_dir(args, out)))
}

/// The same of any plan; `target_dir` is where the test disks are to be.
pub fn provenance_of(kind: RunKind, plan: Plan, target_dir: &Path) -> Provenance {
    Provenance {
        format: FORMAT,
        kind,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        host: host_facts(existing_ancestor(target_dir)),
        plan,
        guest: None,
        setups: Vec::new(),
        together: None,
        predictions: None,
        idle: Vec::new(),
        notes: Vec::new(),
    }
}

/// The folder for test disks.
pub fn target_dir<'a>(args: &'a RunArgs, out: &'a Path) -> &'a Path {
    args.target_dir.as_deref().unwrap_or(out)
}

/// The folder itself, or the nearest one above it that exists: its storage is the same.
fn existing_ancestor(folder: &Path) -> &Path {
    let exists = |folder: &&Path| folder.exists();
    folder.ancestors().filter(|folder| !folder.as_os_str().is_empty()).find(exists).unwrap_or(Path::new("."))
}

/// Opens the run folder, for a new run or to go on with one.
pub fn open_folder<R: Record>(
    resume: bool,
    out: &Path,
    provenance: Provenance,
) -> Result<RunFolder<R>, Failure> {
    let opened =
        if resume { RunFolder::resume(out, &provenance) } else { RunFolder::create(out, provenance) };
    let folder = opened.map_err(folder_failure)?;
    log::keep_in(folder.path());
    Ok(folder)
}

/// The name of a run, for its test disks.
pub fn run_name(out: &Path) -> String {
    let name = out.canonicalize().ok().and_then(|out| Some(out.file_name()?.to_string_lossy().into_owned()));
    name.unwrap_or_else(|| "run".into())
}

/// Says how much there is to do, and shows how far it is.
pub fn steps_bar(plan: &Plan) -> ProgressBar {
    let steps = schedule(plan).len() as u64;
    let estimate_ns = steps * (plan.ramp_ns + plan.time_ns + STEP_OVERHEAD_NS);
    let about = format_duration_ns(estimate_ns / 1_000_000_000 * 1_000_000_000);
    tell!("{steps} measurements, about {about}");
    progress::bar(steps, "starting")
}

/// Ends measuring. Where it failed before the first result nothing is left of the run, and the failure is
/// all that there is to say.
///
/// # Errors
/// That failure; any other is the answer, for after the report.
pub fn keep_or_abandon<R: Record>(folder: RunFolder<R>, measured: Outcome) -> Result<Outcome, Failure> {
    match measured {
        Err(error) if error.kind() != Kind::Interrupted && folder.abandon() => Err(error),
        measured => Ok(measured),
    }
}

/// The grid of the run that is resumed, or the one that is named.
pub fn grid(args: &RunArgs, named: impl FnOnce() -> Result<Grid, Failure>) -> Result<Grid, Failure> {
    let begun = args.out.as_deref().filter(|_| args.resume).and_then(|out| read_provenance(out).ok());
    let Some(Provenance { plan, .. }) = begun else { return named() };
    Ok(Grid {
        name: plan.grid,
        blocks_bytes: plan.blocks_bytes,
        read_percents: plan.read_percents,
        random_percents: plan.random_percents,
        repetitions: plan.repetitions,
        ramp_ns: plan.ramp_ns,
        time_ns: plan.time_ns,
    })
}

pub fn folder_failure(error: FolderError) -> Failure {
    Failure::new(Kind::Folder, error)
}

pub fn disk_failure(error: DiskError) -> Failure {
    let kind = match &error {
        DiskError::Target(virtbench_engine::TargetError::Interrupted(_)) => Kind::Interrupted,
        _ => Kind::Target,
    };
    Failure::new(kind, error)
}

pub fn study_failure(error: StudyError) -> Failure {
    let kind = match &error {
        StudyError::Lab(_) | StudyError::TooManyLost(_) => Kind::Guest,
        StudyError::NoRate { .. } => Kind::Usage,
        StudyError::NoSaturation { .. } => Kind::Measured,
        StudyError::NoMachine(_) | StudyError::NoWorkload(_) => Kind::Other,
        StudyError::Folder(_) => Kind::Folder,
        StudyError::Target { .. } => Kind::Target,
        StudyError::Stopped => Kind::Interrupted,
    };
    Failure::new(kind, error)
}

/// Prints the conclusion and where the rest is: `summary` as one JSON object, or sentences.
pub fn print(
    json: bool,
    conclusion: &Conclusion,
    summary: impl FnOnce() -> serde_json::Result<Value>,
) -> Outcome {
    let mut out = std::io::stdout().lock();
    if json {
        virtbench_formats::json::write(&mut out, &summary()?)?;
        writeln!(out)?;
        return Ok(());
    }
    let Conclusion { headline, details, cautions, report, .. } = conclusion;
    for sentence in std::iter::once(headline).chain(details).chain(cautions) {
        writeln!(out, "{sentence}")?;
    }
    writeln!(out, "\nreport: {report}")?;
    Ok(())
}

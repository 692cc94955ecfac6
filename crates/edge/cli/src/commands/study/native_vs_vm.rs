//! `virtbench study native-vs-vm`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use indicatif::ProgressBar;
use serde::Serialize;
use virtbench_lab::{Environment, Native, host_facts};
use virtbench_record::{FORMAT, Plan, PointRecord, PointStatus, Provenance, RunKind};
use virtbench_report::{Takeaway, takeaway};
use virtbench_study::native_vs_vm::{Event, StudyError, run};
use virtbench_study::{DiskError, FolderError, Grid, RunFolder, StudyDisk, check_plan, schedule};
use virtbench_units::format_duration_ns;

use crate::args::NativeVsVmArgs;
use crate::commands::report;
use crate::exit::{Failure, Kind, Outcome};
use crate::guests::Lab;
use crate::{interrupt, progress};

/// Names of the environments, the reference first.
const ENVIRONMENTS: [&str; 2] = ["native", "vm"];
/// What a step takes beyond its ramp-up and measuring time, in nanoseconds: for the first estimate.
const STEP_OVERHEAD_NS: u64 = 120_000_000;

/// Measures, then writes the report, also of what an interrupted or failed run has measured.
pub fn execute(args: &NativeVsVmArgs) -> Outcome {
    let out = args.out.clone().unwrap_or_else(default_folder);
    let lab = Lab::find(&args.guest)?;
    let provenance = provenance(args, &out)?;
    let opened =
        if args.resume { RunFolder::resume(&out, &provenance) } else { RunFolder::create(&out, provenance) };
    let mut folder = opened.map_err(folder_failure)?;
    let measured = measure(args, &out, &lab, &mut folder);
    drop(folder);
    let (run, files) = report::write(&out, None, None)?;
    let conclusion = takeaway(&run.provenance, &run.records);
    print(args.json, &out, &files, &run.records, &conclusion)?;
    measured
}

fn grid(args: &NativeVsVmArgs) -> Result<Grid, Failure> {
    let mut grid = crate::commands::grid::read(&args.grid)?;
    grid.repetitions = args.repetitions.unwrap_or(grid.repetitions);
    grid.ramp_ns = args.ramp.unwrap_or(grid.ramp_ns);
    grid.time_ns = args.time.unwrap_or(grid.time_ns);
    Ok(grid)
}

fn provenance(args: &NativeVsVmArgs, out: &Path) -> Result<Provenance, Failure> {
    let grid = grid(args)?;
    let plan = Plan {
        grid: grid.name,
        blocks_bytes: grid.blocks_bytes,
        read_percents: grid.read_percents,
        random_percents: grid.random_percents,
        repetitions: grid.repetitions,
        outstanding: args.outstanding,
        workers: args.workers,
        ramp_ns: grid.ramp_ns,
        time_ns: grid.time_ns,
        size_bytes: args.size,
        environments: ENVIRONMENTS.map(str::to_owned).to_vec(),
        seed: args.seed,
    };
    check_plan(&plan).map_err(|error| Failure::new(Kind::Usage, error))?;
    let target_dir = args.target_dir.as_deref().unwrap_or(out);
    Ok(Provenance {
        format: FORMAT,
        kind: RunKind::NativeVsVm,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect(),
        started_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
        host: host_facts(existing_ancestor(target_dir)),
        plan,
        guest: None,
        setups: Vec::new(),
        idle: Vec::new(),
        notes: Vec::new(),
    })
}

/// The folder itself, or the nearest one above it that exists: its storage is the same.
fn existing_ancestor(folder: &Path) -> &Path {
    let exists = |folder: &&Path| folder.exists();
    folder.ancestors().filter(|folder| !folder.as_os_str().is_empty()).find(exists).unwrap_or(Path::new("."))
}

fn default_folder() -> PathBuf {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let stamp = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_secs(since)).to_string();
    PathBuf::from(format!("virtbench-native-vs-vm-{}", stamp.replace([':', 'Z'], "").replace('T', "-")))
}

/// Prepares the disk and measures what is missing.
fn measure(args: &NativeVsVmArgs, out: &Path, lab: &Lab, folder: &mut RunFolder) -> Outcome {
    let run_name =
        out.canonicalize().ok().and_then(|out| Some(out.file_name()?.to_string_lossy().into_owned()));
    let bar = progress::bar(0, "writing the test disk");
    let disk = StudyDisk::prepare(
        args.target_dir.as_deref().unwrap_or(out),
        &run_name.unwrap_or_else(|| "run".into()),
        args.size,
        |written, total| {
            bar.set_length(total);
            bar.set_position(written);
            !interrupt::requested()
        },
    );
    bar.finish_and_clear();
    let disk = disk.map_err(disk_failure)?;
    let notes = disk.notes().to_vec();
    folder.amend(|provenance| provenance.notes.extend(notes)).map_err(folder_failure)?;
    let bar = steps_bar(&folder.provenance().plan);
    let mut show = |event: Event<'_>| show(&bar, &event);
    let [native, vm] = ENVIRONMENTS;
    let mut environments: [Box<dyn Environment>; 2] =
        [Box::new(Native::new(native, disk.path().to_owned())), lab.vm(vm, disk.path())];
    let measured = run(folder, &mut environments, interrupt::flag(), &mut show);
    bar.finish_and_clear();
    measured.map_err(study_failure)
}

fn steps_bar(plan: &Plan) -> ProgressBar {
    let steps = schedule(plan).len() as u64;
    let estimate_ns = steps * (plan.ramp_ns + plan.time_ns + STEP_OVERHEAD_NS);
    let about = format_duration_ns(estimate_ns / 1_000_000_000 * 1_000_000_000);
    eprintln!("{steps} measurements, about {about}");
    progress::bar(steps, "starting")
}

fn show(bar: &ProgressBar, event: &Event<'_>) {
    match event {
        Event::Starting(environment) => bar.set_message(format!("starting {environment}")),
        Event::Measuring { done, step, environment, .. } => {
            bar.set_position(*done as u64);
            bar.set_message(format!("{environment}: {}", step.point));
        }
        Event::Restarting { environment, error } => {
            bar.suspend(|| eprintln!("{environment} hangs and is started anew: {error}"));
        }
        Event::Recorded(_) => bar.inc(1),
    }
}

fn folder_failure(error: FolderError) -> Failure {
    Failure::new(Kind::Folder, error)
}

fn disk_failure(error: DiskError) -> Failure {
    let kind = match &error {
        DiskError::Target(virtbench_engine::TargetError::Interrupted(_)) => Kind::Interrupted,
        _ => Kind::Target,
    };
    Failure::new(kind, error)
}

fn study_failure(error: StudyError) -> Failure {
    let kind = match &error {
        StudyError::Lab(_) => Kind::Guest,
        StudyError::Folder(_) => Kind::Folder,
        StudyError::Target { .. } => Kind::Target,
        StudyError::Stopped => Kind::Interrupted,
    };
    Failure::new(kind, error)
}

/// What `--json` prints.
#[derive(Serialize)]
struct Summary<'a> {
    folder: &'a Path,
    report: &'a Path,
    csv: &'a Path,
    points_measured: usize,
    points_unavailable: usize,
    headline: &'a str,
    details: &'a [String],
    cautions: &'a [String],
}

fn print(
    json: bool,
    folder: &Path,
    [report, csv]: &[PathBuf; 2],
    records: &[PointRecord],
    conclusion: &Takeaway,
) -> Outcome {
    let measured = records.iter().filter(|record| matches!(record.status, PointStatus::Measured(_))).count();
    let Takeaway { headline, details, cautions } = conclusion;
    let mut out = std::io::stdout().lock();
    if json {
        let summary = Summary {
            folder,
            report,
            csv,
            points_measured: measured,
            points_unavailable: records.len() - measured,
            headline,
            details,
            cautions,
        };
        serde_json::to_writer(&mut out, &summary)?;
        writeln!(out)?;
        return Ok(());
    }
    for sentence in std::iter::once(headline).chain(details).chain(cautions) {
        writeln!(out, "{sentence}")?;
    }
    writeln!(out, "\nreport: {}", report.display())?;
    Ok(())
}

//! A job from opening its target to its results, also in other tools' formats.

use std::fs::{self, OpenOptions};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use virtbench_engine::{Target, TargetError, TargetName, TargetRequest};
use virtbench_formats::results::{
    ExportError, JobResult, diskspd_xml, fio_json, hlog, iometer_csv, openmetrics,
};
use virtbench_record::{LoadOutcome, TargetKind};
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

use super::measure::{Settled, measure_watched, settle};
use super::repetitions::Repetitions;
use super::spec::Job;
use crate::args::{ExportArg, ExportFormat, LoadArgs, ShapeArgs};
use crate::exit::{Failure, Kind};
use crate::{interrupt, progress};

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

/// Size of a file that is made because nothing else was said, in bytes.
pub const DEFAULT_SIZE_BYTES: u64 = 1 << 30;

/// What a target is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be loaded.
    Load,
    /// To be checked, which writes nothing.
    Check,
}

impl Job {
    /// Opens the target; what depends on it becomes part of the load.
    pub fn open(&self, args: &ShapeArgs, purpose: Purpose) -> Result<(Target, LoadSpec), Failure> {
        let target = open_for(args, &[self], purpose)?;
        let spec = self.on(&target);
        Ok((target, spec))
    }
}

/// Opens the target that these jobs share, of which there is one at least.
pub fn open_for(args: &ShapeArgs, jobs: &[&Job], purpose: Purpose) -> Result<Target, Failure> {
    let Some(job) = jobs.first() else {
        return Err(Failure::message(Kind::Other, "no job to open a target for"));
    };
    if let Some(job) = jobs.iter().find(|job| job.schedule.must_exist && !job.target.exists()) {
        let message =
            format!("{} does not exist, and its job says allow_file_create=0", job.target.display());
        return Err(Failure::message(Kind::Target, message));
    }
    let request = TargetRequest {
        path: job.target.clone(),
        size_bytes: jobs.iter().filter_map(|job| job.made_bytes()).max(),
        direct: job.load.direct,
        reads: jobs.iter().any(|job| job.load.access.reads()),
        writes: jobs.iter().any(|job| job.load.access.writes()) && purpose == Purpose::Load,
        allow_overwrite: args.common.allow_overwrite,
    };
    let target = open_request(request, args.common.grow && purpose == Purpose::Load)?;
    let beside = || {
        let mut name = job.target.file_name()?.to_owned();
        name.push(".virtbench-ledger");
        (target.facts().kind == TargetKind::File).then(|| job.target.with_file_name(name))
    };
    let target = match args.options.ledger.clone().or_else(beside) {
        Some(path) => target.with_ledger(path),
        None => target,
    };
    if job.schedule.drop_cache && !target.facts().direct {
        target.drop_cache()?;
    }
    Ok(match &args.fault {
        Some(faults) => target.with_faults(faults.clone()),
        None => target,
    })
}

/// Opens a target, which is made, with a size nobody chose if need be, where there is none. One that is
/// smaller than asked for is made larger only with `grow`.
pub fn open_request(mut request: TargetRequest, grow: bool) -> Result<Target, Failure> {
    let name = TargetName::parse(&request.path).map_err(|error| Failure::new(Kind::Usage, error))?;
    if name.is_made() && fs::symlink_metadata(&request.path).is_err() {
        request.size_bytes.get_or_insert(DEFAULT_SIZE_BYTES);
    } else if name.is_made() && !grow {
        refuse_to_grow(&request)?;
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

/// Refuses a file that would have to be made larger: nobody expects the disk to fill, and the file's
/// contents to change, for a size that was meant for another target.
fn refuse_to_grow(TargetRequest { path, size_bytes, .. }: &TargetRequest) -> Result<(), Failure> {
    let has_bytes = fs::metadata(path).ok().filter(fs::Metadata::is_file).map(|file| file.len());
    match (has_bytes, size_bytes) {
        (Some(has_bytes), Some(wanted_bytes)) if has_bytes < *wanted_bytes => Err(Failure::message(
            Kind::Target,
            format!(
                "{} has {}, less than the {} asked for: give --size {has_bytes} to use it as it is, --grow to have \
                 it made larger, or name another target",
                path.display(),
                format_bytes(has_bytes),
                format_bytes(*wanted_bytes)
            ),
        )),
        _ => Ok(()),
    }
}

/// Makes sure that every file can be written, before anything is measured. What is there stays.
pub fn check(exports: &[ExportArg]) -> Result<(), Failure> {
    exports.iter().try_for_each(|ExportArg { path, .. }| {
        let made = OpenOptions::new().write(true).create_new(true).open(path);
        let checked = match made {
            Ok(_) => fs::remove_file(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                OpenOptions::new().write(true).open(path).map(drop)
            }
            Err(error) => Err(error),
        };
        checked.map_err(|error| {
            let what = format!("--export: cannot write {}: {error}", path.display());
            Failure::message(Kind::Usage, what)
        })
    })
}

/// Writes every file that was asked for.
pub fn write(exports: &[ExportArg], done: &[Done]) -> Result<(), Failure> {
    let results: Vec<JobResult<'_>> = done.iter().map(Done::result).collect();
    for ExportArg { format, path } in exports {
        let text = text(*format, &results)?;
        fs::write(path, text).map_err(|error| {
            Failure::message(Kind::Other, format!("cannot write {}: {error}", path.display()))
        })?;
    }
    Ok(())
}

fn text(format: ExportFormat, results: &[JobResult<'_>]) -> Result<String, ExportError> {
    let version = env!("CARGO_PKG_VERSION");
    match format {
        ExportFormat::Diskspd => diskspd_xml(version, results),
        ExportFormat::FioJson => fio_json(version, results),
        ExportFormat::IometerCsv => iometer_csv(version, results),
        ExportFormat::Hlog => hlog(results),
        ExportFormat::Openmetrics => openmetrics(results),
    }
}

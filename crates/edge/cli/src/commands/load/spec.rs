//! The jobs of a `--spec` file, with the options that override it.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;
use virtbench_engine::Target;
use virtbench_formats::{Format, ImportedJob, MAX_FILE_BYTES, Remark, Schedule, Surroundings, import_within};
use virtbench_workload::{AccessLine, LoadSpec};

use crate::args::LoadArgs;
use crate::exit::{Failure, Kind, named};

/// What an option replaces in a file's load, by its name on the command line.
type Override = (&'static str, fn(&mut LoadSpec, &LoadSpec));

/// Every option of a load that a file can set as well. What the mix reads and writes is the file's
/// alone; where it seeks and how much of it is trimmed can be replaced in all of its lines.
const OVERRIDES: [Override; 19] = [
    ("outstanding", |load, given| load.outstanding = given.outstanding),
    ("workers", |load, given| load.workers = given.workers),
    ("ramp", |load, given| load.ramp_ns = given.ramp_ns),
    ("time", |load, given| {
        load.time_ns = given.time_ns;
        // A time that is given is how long the load takes, whatever it has done by then.
        load.amount = None;
    }),
    ("interval", |load, given| load.interval_ns = given.interval_ns),
    ("engine", |load, given| load.engine = given.engine),
    ("buffered", |load, given| load.direct = given.direct),
    ("seed", |load, given| load.seed = given.seed),
    ("rate", |load, given| load.rate = given.rate),
    ("distribution", |load, given| each_line(load, given, |line, given| line.placement = given.placement)),
    ("trim", |load, given| each_line(load, given, |line, given| line.trim_percent = given.trim_percent)),
    ("flush_every", |load, given| load.flush_every = given.flush_every),
    ("compressible", |load, given| {
        load.content.compressible_percent = given.content.compressible_percent;
    }),
    ("duplicate", |load, given| load.content.duplicate_percent = given.content.duplicate_percent),
    ("verify", |load, given| load.verify = given.verify),
    ("timeout", |load, given| load.timeout_ns = given.timeout_ns),
    ("pin", |load, given| load.processors.clone_from(&given.processors)),
    ("sqpoll", |load, given| load.uring.submission_polling = given.uring.submission_polling),
    ("iopoll", |load, given| load.uring.completion_polling = given.uring.completion_polling),
];

/// What fio has a machine say of itself in a job's file.
const FIGURES: [&str; 3] = ["$ncpus", "$mb_memory", "$pagesize"];

/// Replaces something in every line of the file's mix by what it is in the options' only line.
fn each_line(load: &mut LoadSpec, given: &LoadSpec, replace: fn(&mut AccessLine, &AccessLine)) {
    if let [given] = given.access.lines.as_slice() {
        load.access.lines.iter_mut().for_each(|line| replace(line, given));
    }
}

/// Reads the file, or fio's options. `given` is the load that the options alone would make; those among
/// them that were given on the command line replace the file's.
pub fn read(args: &LoadArgs, given: &LoadSpec, matches: Option<&ArgMatches>) -> Result<Plan, Failure> {
    let path = args.spec.spec.as_deref();
    let source = path.map_or_else(|| "--fio".to_owned(), |path| path.display().to_string());
    let usage = |message: String| Failure::message(Kind::Usage, format!("{source}: {message}"));
    let bytes = match (path, &args.spec.fio) {
        (Some(path), _) => bytes_of(path).map_err(|error| usage(format!("cannot be read: {error}")))?,
        (None, options) => options.clone().unwrap_or_default().into_bytes(),
    };
    let format = if path.is_some() { args.spec.format.into() } else { Some(Format::FioCommand) };
    let target_of = |target: &str| args.shape.target.clone().unwrap_or_else(|| PathBuf::from(target));
    // In environments a file of its own stands for whatever target a job names.
    let elsewhere = !args.environment.is_empty();
    let size_of = |target: &str| {
        if elsewhere {
            return args.shape.common.size;
        }
        let mut file = File::open(target_of(target)).ok()?;
        file.seek(SeekFrom::End(0)).ok().filter(|bytes| *bytes > 0)
    };
    let surroundings = Surroundings {
        variable: &|name| std::env::var(name).ok(),
        size_of: &size_of,
        sector_of: &|target| (!elsewhere).then(|| sector_bytes(&target_of(target))).flatten(),
        text_of: &|name| included(name, path),
        processors: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
        memory_bytes: kernel_figure("/proc/meminfo", "MemTotal:"),
        page_bytes: kernel_figure("/proc/self/smaps", "KernelPageSize:"),
    };
    let of_this_host = FIGURES.into_iter().filter(|name| elsewhere && holds(&bytes, name));
    let mut notes: Vec<String> = of_this_host.map(|name| format!("{name} is that of this host")).collect();
    let load = import_within(&bytes, format, args.spec.lenient, &surroundings).map_err(|error| {
        let text = named(&error);
        usage(if text.contains('\n') { format!("\n{text}") } else { text })
    })?;
    let explicit = |name: &str| {
        matches.is_some_and(|matches| matches.value_source(name) == Some(ValueSource::CommandLine))
    };
    let jobs = load.jobs.into_iter().map(|job| {
        let ImportedJob { name, mut load, target, size_bytes, group, schedule } = job;
        for (_, replace) in OVERRIDES.iter().filter(|(name, _)| explicit(name)) {
            replace(&mut load, given);
        }
        let named = target.map(PathBuf::from).or_else(|| elsewhere.then(PathBuf::new));
        let target = args.shape.target.clone().or(named).ok_or_else(|| {
            usage(format!("job {name:?} names no target that can be used here: give --target"))
        })?;
        let size_bytes = args.shape.common.size.or(size_bytes);
        Ok(Job { name: Some(name), target, size_bytes, later_bytes: None, group, schedule, load })
    });
    let jobs = jobs.collect::<Result<_, Failure>>()?;
    notes.extend(load.notes);
    Ok(Plan { jobs, notes, ignored: load.ignored })
}

/// Whether a text has a word in it.
fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|part| part == word.as_bytes())
}

/// The bytes of a file, one more than allowed where there are more.
fn bytes_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a file that the one at `path` includes: as fio looks for it, here, then beside that one.
fn included(name: &str, path: Option<&Path>) -> Result<String, String> {
    let beside = path.and_then(Path::parent).map(|folder| folder.join(name));
    let place = Path::new(name);
    let place = if place.exists() { place.to_owned() } else { beside.unwrap_or_else(|| place.to_owned()) };
    let bytes = bytes_of(&place).map_err(|error| format!("{} cannot be read: {error}", place.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The sector of the device that a path is or lies on, in bytes, where the kernel says so.
fn sector_bytes(path: &Path) -> Option<u64> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let meta = std::fs::metadata(path).or_else(|_| std::fs::metadata(folder)).ok()?;
    let device = if meta.file_type().is_block_device() { meta.rdev() } else { meta.dev() };
    // Linux's way to write both parts of a device's number.
    let major = (device >> 8 & 0xfff) | (device >> 32 & 0xffff_f000);
    let minor = (device & 0xff) | (device >> 12 & 0xffff_ff00);
    let place = format!("/sys/dev/block/{major}:{minor}");
    // A partition has its disk's queue.
    ["queue", "../queue"]
        .iter()
        .find_map(|queue| std::fs::read_to_string(format!("{place}/{queue}/logical_block_size")).ok())?
        .trim()
        .parse()
        .ok()
}

/// A figure that the kernel gives in kilobytes, in bytes; 0 where it does not.
fn kernel_figure(path: &str, name: &str) -> u64 {
    let lines = File::open(path).map(|file| BufReader::new(file).lines());
    let figure = lines
        .into_iter()
        .flatten()
        .map_while(Result::ok)
        .find_map(|line| line.strip_prefix(name)?.trim().trim_end_matches(" kB").parse::<u64>().ok());
    figure.unwrap_or(0) << 10
}

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
    /// How far other jobs of the plan reach into the same target, in bytes.
    pub later_bytes: Option<u64>,
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

impl Plan {
    /// Tells each job how far the others reach into its target, so that a file is made large enough for all.
    pub fn reach_together(mut self) -> Self {
        let reaches: Vec<(PathBuf, Option<u64>)> =
            self.jobs.iter().map(|job| (job.target.clone(), job.reach_bytes())).collect();
        for job in &mut self.jobs {
            let same = reaches.iter().filter(|(target, _)| *target == job.target);
            job.later_bytes = same.filter_map(|(_, reach)| *reach).max();
        }
        self
    }
}

impl Job {
    pub fn check(&self) -> Result<(), Failure> {
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

    /// How large a target that is made has to be for this job and for later ones of the same plan.
    pub fn made_bytes(&self) -> Option<u64> {
        self.reach_bytes().max(self.later_bytes)
    }

    /// How far into the target the load reaches, in bytes, where that is known.
    pub fn reach_bytes(&self) -> Option<u64> {
        let region_bytes = self.wanted_bytes()?;
        Some(LoadSpec { region_bytes, ..self.load.clone() }.end_bytes())
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

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};
    use virtbench_workload::Placement;

    use super::*;
    use crate::args::{Arguments, Command};

    const FILE: &str = "[a]\nruntime=60\ntime_based\niodepth=8\nioengine=io_uring\nfilename=/x\nnumjobs=3\n[b]\nstonewall\nruntime=9\ntime_based\n";

    fn plan(text: &str, options: &[&str]) -> Result<Plan, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("spec");
        std::fs::write(&path, text).unwrap();
        let line = [&["virtbench", "load", "--spec", path.to_str().unwrap()], options].concat();
        let matches = Arguments::command().try_get_matches_from(line).unwrap();
        let Command::Load(args) = Arguments::from_arg_matches(&matches).unwrap().command else { panic!() };
        let given = super::super::options::given(&args);
        read(&args, &given, matches.subcommand_matches("load"))
    }

    #[test]
    fn the_file_holds_unless_an_option_is_given() {
        let plan = plan(FILE, &["--target", "/y", "--time", "2s", "--size", "1m", "--buffered"]).unwrap();
        let [a, b] = plan.jobs.as_slice() else { panic!() };
        assert_eq!((a.load.outstanding, a.load.workers, a.load.time_ns), (8, 3, 2_000_000_000));
        assert_eq!((b.load.time_ns, b.size_bytes), (2_000_000_000, Some(1 << 20)));
        assert!(!a.load.direct && a.target == Path::new("/y"));
    }

    #[test]
    fn where_a_file_seeks_and_what_it_trims_can_be_replaced() {
        let options =
            ["--target", "/y", "--distribution", "zipf:1.1", "--trim", "5", "--rate", "9/s", "--pin", "0"];
        let plan = plan(FILE, &options).unwrap();
        for job in &plan.jobs {
            assert!(job.load.access.lines.iter().all(|line| line.trim_percent > 4.0));
            assert!(job.load.access.lines.iter().all(|line| line.placement != Placement::default()));
            assert_eq!(
                (job.load.rate.unwrap().per_second, job.load.processors.as_slice()),
                (9.0, [0].as_slice())
            );
        }
    }

    #[test]
    fn a_job_without_a_target_says_so() {
        let error = format!("{:?}", plan("diskspd -d1 -w0 -b4K #0\n", &[]).err().unwrap());
        assert!(error.contains("--target"), "{error}");
        let targets: Vec<PathBuf> = plan(FILE, &[]).unwrap().jobs.into_iter().map(|job| job.target).collect();
        assert_eq!(targets, [Path::new("/x"), Path::new("b.0.0")], "fio names files after jobs");
    }

    #[test]
    fn a_time_on_the_command_line_replaces_what_ends_a_job() {
        let text = "[a]\nsize=1m\nloops=3\n";
        assert!(plan(text, &[]).unwrap().jobs[0].load.amount.is_some());
        assert!(plan(text, &["--time", "3s"]).unwrap().jobs[0].load.amount.is_none());
    }

    #[test]
    fn what_is_not_understood_is_refused_unless_lenient() {
        let text = format!("{FILE}atomic=1\n");
        let error = format!("{:?}", plan(&text, &["--target", "/y"]).err().unwrap());
        assert!(error.contains("line 12") && error.contains("--lenient"), "{error}");
        assert_eq!(plan(&text, &["--target", "/y", "--lenient"]).unwrap().ignored.len(), 1);
    }

    #[test]
    fn overrides_are_options_that_exist() {
        let command = Arguments::command();
        let load = command.find_subcommand("load").unwrap();
        for (name, _) in OVERRIDES {
            assert!(load.get_arguments().any(|argument| argument.get_id() == name), "{name}");
        }
    }
}

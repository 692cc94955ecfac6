//! A file load in Filebench's terms: sets of files, and threads that go round a list of flow
//! operations (Tarasov, Zadok, Shepler: "Filebench: A Flexible Framework for File System
//! Benchmarking", ;login: 41(1), 2016).

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::draw::Draw;

/// The most sets of files.
pub const MAX_FILESETS: usize = 64;

/// The most files of all sets together.
pub const MAX_ENTRIES: u64 = 10_000_000;

/// The most threads of all processes together.
pub const MAX_MODEL_THREADS: u64 = 1024;

/// The most flow operations of a thread.
pub const MAX_FLOWOPS: usize = 1024;

/// The most files a thread has open at once.
pub const MAX_FDS: usize = 64;

/// The largest single read or write, in bytes.
const MAX_IO_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// The most repetitions of an operation in one round.
const MAX_ITERS: u32 = 1_000_000;

/// A model that makes no sense.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("{place}: {why}")]
pub struct ModelError {
    /// Which part of the model, by its name.
    pub place: String,
    /// What is wrong with it, and what to do.
    pub why: String,
}

/// A tree of files of which some exist at the start.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileSet {
    /// Its name, and that of its folder.
    pub name: String,
    /// How many files it has when all exist.
    pub entries: u32,
    /// Size of a file, in bytes, drawn once for each.
    pub size: Draw,
    /// Mean number of entries in a folder; how many each one has is gamma distributed, shape 1.5.
    pub dir_width: u32,
    /// How many of the files exist at the start, in percent.
    pub prealloc_percent: u8,
}

/// Which file an operation works on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileChoice {
    /// The thread's open file of this number.
    pub fd: u8,
    /// Where nothing is open there, one of this set is opened first.
    pub set: Option<u16>,
}

/// How a read or write of a part is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Io {
    /// Its size, in bytes.
    pub size: Draw,
    /// Whether it goes to a random place of the file; otherwise it goes on, and wraps.
    pub random: bool,
    /// Bytes of the file that are used, from its start; all where zero.
    pub working_set: u64,
    /// Whether each write is on the disk when it returns (`O_DSYNC`).
    pub dsync: bool,
}

/// What a flow operation does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[allow(missing_docs)]
pub enum Action {
    /// Creates a file of the set that does not exist, and leaves it open.
    CreateFile {
        set: u16,
        fd: u8,
    },
    /// Opens a file of the set that exists.
    OpenFile {
        set: u16,
        fd: u8,
    },
    /// Closes it.
    CloseFile {
        fd: u8,
    },
    /// Deletes a file of the set that exists and nobody has open.
    DeleteFile {
        set: u16,
    },
    /// Looks up the attributes of a file of the set that exists.
    StatFile {
        set: u16,
    },
    /// Reads the names in a folder of the set.
    ListDir {
        set: u16,
    },
    /// Reads a file from its start to its end, so many bytes at a time.
    ReadWholeFile {
        place: FileChoice,
        io: Draw,
    },
    /// Writes a file from its start to the end it was drawn to have, or to that of the file open as
    /// `source`.
    WriteWholeFile {
        place: FileChoice,
        io: Draw,
        source: Option<u8>,
    },
    /// Writes at the end of a file: so many bytes, or between one and so many where `random`.
    AppendFile {
        place: FileChoice,
        size: Draw,
        random: bool,
    },
    /// Reads a part of a file.
    Read {
        place: FileChoice,
        io: Io,
    },
    /// Writes a part of a file.
    Write {
        place: FileChoice,
        io: Io,
    },
    /// Waits until a file is on the disk.
    Fsync {
        fd: u8,
    },
    /// Waits so many seconds.
    Delay {
        seconds: Draw,
    },
    /// Takes events from the generator: one a round, one for each operation or each mebibyte since
    /// the last time.
    EventLimit,
    OpsLimit,
    BandwidthLimit,
    /// Ends the thread after so many operations of its own, or bytes.
    FinishOnCount {
        count: u64,
    },
    FinishOnBytes {
        bytes: u64,
    },
}

impl Action {
    /// Filebench's name of it, under which response times are kept.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::CreateFile { .. } => "createfile",
            Self::OpenFile { .. } => "openfile",
            Self::CloseFile { .. } => "closefile",
            Self::DeleteFile { .. } => "deletefile",
            Self::StatFile { .. } => "statfile",
            Self::ListDir { .. } => "listdir",
            Self::ReadWholeFile { .. } => "readwholefile",
            Self::WriteWholeFile { .. } => "writewholefile",
            Self::AppendFile { random: false, .. } => "appendfile",
            Self::AppendFile { random: true, .. } => "appendfilerand",
            Self::Read { .. } => "read",
            Self::Write { .. } => "write",
            Self::Fsync { .. } => "fsync",
            Self::Delay { .. } => "delay",
            Self::EventLimit => "eventlimit",
            Self::OpsLimit => "opslimit",
            Self::BandwidthLimit => "bwlimit",
            Self::FinishOnCount { .. } => "finishoncount",
            Self::FinishOnBytes { .. } => "finishonbytes",
        }
    }

    /// Whether it is an operation on the file system, which is counted and timed.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        !matches!(
            self,
            Self::Delay { .. }
                | Self::EventLimit
                | Self::OpsLimit
                | Self::BandwidthLimit
                | Self::FinishOnCount { .. }
                | Self::FinishOnBytes { .. }
        )
    }

    fn set(&self) -> Option<u16> {
        match self {
            Self::CreateFile { set, .. }
            | Self::OpenFile { set, .. }
            | Self::DeleteFile { set }
            | Self::StatFile { set }
            | Self::ListDir { set } => Some(*set),
            _ => self.place().and_then(|place| place.set),
        }
    }

    fn place(&self) -> Option<FileChoice> {
        match self {
            Self::ReadWholeFile { place, .. }
            | Self::WriteWholeFile { place, .. }
            | Self::AppendFile { place, .. }
            | Self::Read { place, .. }
            | Self::Write { place, .. } => Some(*place),
            _ => None,
        }
    }

    /// The open files that it uses.
    fn fds(&self) -> Vec<u8> {
        match self {
            Self::CreateFile { fd, .. }
            | Self::OpenFile { fd, .. }
            | Self::CloseFile { fd }
            | Self::Fsync { fd } => vec![*fd],
            Self::WriteWholeFile { place, source, .. } => std::iter::once(place.fd).chain(*source).collect(),
            _ => self.place().map(|place| place.fd).into_iter().collect(),
        }
    }

    fn opens(&self, fd: u8) -> bool {
        match self {
            Self::CreateFile { fd: opened, .. } | Self::OpenFile { fd: opened, .. } => *opened == fd,
            _ => self.place().is_some_and(|place| place.fd == fd && place.set.is_some()),
        }
    }

    /// The size of what it moves at once, in bytes.
    #[must_use]
    pub fn io_size(&self) -> Option<&Draw> {
        match self {
            Self::ReadWholeFile { io, .. } | Self::WriteWholeFile { io, .. } => Some(io),
            Self::AppendFile { size, .. } => Some(size),
            Self::Read { io, .. } | Self::Write { io, .. } => Some(&io.size),
            _ => None,
        }
    }
}

/// A step of a thread's round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flowop {
    /// Its name in the model.
    pub name: String,
    /// What it does.
    pub action: Action,
    /// How often, in one round.
    pub iters: u32,
}

/// Threads that do the same.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadFlow {
    /// Their name.
    pub name: String,
    /// How many, in each instance of the process.
    pub instances: u32,
    /// Their round.
    pub flow: Vec<Flowop>,
}

/// Processes that do the same. Here each is a group of threads.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Process {
    /// Their name.
    pub name: String,
    /// How many.
    pub instances: u32,
    /// Their threads.
    pub threads: Vec<ThreadFlow>,
}

/// When a run ends before its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Quit {
    /// When all threads have come to their end.
    #[default]
    AllDone,
    /// When the first has.
    FirstDone,
}

/// A whole model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileModel {
    /// What it is called.
    pub name: String,
    /// Its files.
    pub filesets: Vec<FileSet>,
    /// What is done to them.
    pub processes: Vec<Process>,
    /// Events per second that limits share; none where nothing is limited.
    pub event_rate: Option<f64>,
    /// When it ends before its time.
    pub quit: Quit,
}

impl FileModel {
    /// Threads of all processes together.
    #[must_use]
    pub fn threads(&self) -> u64 {
        let of = |process: &Process| {
            let threads: u64 = process.threads.iter().map(|thread| u64::from(thread.instances)).sum();
            threads * u64::from(process.instances)
        };
        self.processes.iter().map(of).sum()
    }

    /// Gives the model so many threads, where all of them do the same.
    ///
    /// # Errors
    /// It has threads of several kinds: which of them should change is not known.
    pub fn set_threads(&mut self, threads: u32) -> Result<(), ModelError> {
        let kinds: usize = self.processes.iter().map(|process| process.threads.len()).sum();
        let why =
            "it has several kinds of threads: set the variable of the one you mean, such as set=nthreads:8";
        match self.processes.as_mut_slice() {
            [process] if kinds == 1 => {
                process.instances = 1;
                process.threads[0].instances = threads;
                Ok(())
            }
            _ => Err(ModelError { place: format!("{}: threads", self.name), why: why.into() }),
        }
    }

    /// Bytes of the files that exist at the start, by their means.
    #[must_use]
    pub fn initial_bytes(&self) -> f64 {
        let of = |set: &FileSet| {
            set.size.mean() * f64::from(set.entries) * f64::from(set.prealloc_percent) / 100.0
        };
        self.filesets.iter().map(of).sum()
    }

    /// Checks every part against its limits and the others.
    ///
    /// # Errors
    /// The first thing found wrong, and where.
    pub fn validate(&self) -> Result<(), ModelError> {
        let wrong = |place: String, why: String| Err(ModelError { place, why });
        let whole = || self.name.clone();
        if self.filesets.len() > MAX_FILESETS {
            return wrong(whole(), format!("more than {MAX_FILESETS} filesets"));
        }
        let entries: u64 = self.filesets.iter().map(|set| u64::from(set.entries)).sum();
        if entries > MAX_ENTRIES {
            return wrong(whole(), format!("{entries} files, more than {MAX_ENTRIES}: lower entries"));
        }
        for (index, set) in self.filesets.iter().enumerate() {
            self.check_set(index, set)?;
        }
        match self.threads() {
            0 => return wrong(whole(), "it has no threads, so nothing would be done".into()),
            MAX_MODEL_THREADS.. => {
                return wrong(whole(), format!("{MAX_MODEL_THREADS} threads or more: lower instances"));
            }
            _ => {}
        }
        if let Some(rate) =
            self.event_rate.filter(|rate| !(*rate > 0.0 && *rate <= crate::load_error::MAX_RATE))
        {
            return wrong("eventgen".into(), format!("a rate of {rate} is not between 0 and 10000000"));
        }
        let threads = self.processes.iter().flat_map(|process| &process.threads);
        threads.into_iter().try_for_each(|thread| self.check_thread(thread))
    }

    fn check_set(&self, index: usize, set: &FileSet) -> Result<(), ModelError> {
        let wrong = |why: String| Err(ModelError { place: format!("fileset {}", set.name), why });
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let named = set.name.chars().all(plain) && set.name.chars().any(|c| c.is_ascii_alphanumeric());
        if !named || set.name.len() > 64 {
            return wrong("a name has up to 64 letters, digits, dots, dashes and underscores".into());
        }
        if self.filesets[..index].iter().any(|other| other.name == set.name) {
            return wrong("two filesets have this name".into());
        }
        if set.entries == 0 || set.prealloc_percent > 100 {
            return wrong("it needs at least one entry, and a prealloc of at most 100 %".into());
        }
        set.size.validate().or_else(|why| wrong(format!("size: {why}")))
    }

    fn check_thread(&self, thread: &ThreadFlow) -> Result<(), ModelError> {
        let wrong = |place: &str, why: String| Err(ModelError { place: place.to_owned(), why });
        let counted = thread.flow.iter().any(|flowop| flowop.action.is_counted());
        if !counted || thread.flow.len() > MAX_FLOWOPS {
            let why = format!("a thread has 1 to {MAX_FLOWOPS} flowops, at least one of them on a file");
            return wrong(&format!("thread {}", thread.name), why);
        }
        for flowop in &thread.flow {
            let place = format!("flowop {}", flowop.name);
            if !(1..=MAX_ITERS).contains(&flowop.iters) {
                return wrong(&place, format!("iters {} is outside 1 to {MAX_ITERS}", flowop.iters));
            }
            if flowop.action.set().is_some_and(|set| usize::from(set) >= self.filesets.len()) {
                return wrong(&place, "its fileset does not exist".into());
            }
            for fd in flowop.action.fds() {
                if usize::from(fd) >= MAX_FDS {
                    return wrong(&place, format!("fd {fd} is not below {MAX_FDS}"));
                }
                if !thread.flow.iter().any(|other| other.action.opens(fd)) {
                    return wrong(&place, format!("no flowop of its thread opens fd {fd}"));
                }
            }
            if let Some(size) = flowop.action.io_size() {
                size.validate().or_else(|why| wrong(&place, format!("iosize: {why}")))?;
                if size.mean() > MAX_IO_BYTES {
                    return wrong(&place, format!("iosize {} is more than 64 MiB", size.mean()));
                }
            }
            if let Action::Delay { seconds } = &flowop.action {
                seconds.validate().or_else(|why| wrong(&place, format!("value: {why}")))?;
            }
        }
        Ok(())
    }
}

/// A load on files that makes no sense.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum FileLoadError {
    /// A number outside its limits.
    #[error("{flag} {value} is outside {least} to {most}")]
    Range {
        /// The flag to change.
        flag: &'static str,
        /// What was given.
        value: u64,
        /// The least allowed.
        least: u64,
        /// The most allowed.
        most: u64,
    },
    /// A rate that is no rate.
    #[error("rate={0}/s is outside 0.001/s to 10000000/s, of all threads together")]
    Rate(String),
    /// A flag that this load has no use for.
    #[error("{flag}: {why}")]
    Useless {
        flag: &'static str,
        /// Why, and what to do.
        why: &'static str,
    },
    /// The model.
    #[error(transparent)]
    Model(#[from] ModelError),
}

/// Numbers of loads on files are held against their limits.
pub(super) fn range(flag: &'static str, value: u64, least: u64, most: u64) -> Result<(), FileLoadError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(FileLoadError::Range { flag, value, least, most })
}

//! The folder of a run: written as points are measured, so that a killed run loses nothing.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;
use virtbench_record::{
    PointRecord, Provenance, Record, RecordError, Records, parse_provenance, parse_records,
};

use crate::held::Held;
use crate::histogram_log;

const PROVENANCE: &str = "run.json";
/// It, until it is whole.
const HALF_WRITTEN: &str = "run.json.new";
const RESULTS: &str = "results.jsonl";
const HISTOGRAMS: &str = "histograms.hlog";
/// The configuration that a study on the fence's disks leaves for its reader.
const FENCE: &str = "fence.toml";
/// What happened while the run was measured, to find the cause of a failure.
pub const LOG: &str = "virtbench.log";

/// A run folder that cannot be used.
#[derive(Debug, Error)]
pub enum FolderError {
    /// Another run writes into it.
    #[error("{path} is in use by another run: wait for it, or choose another --out", path = .0.display())]
    InUse(PathBuf),
    /// It holds a run already.
    #[error("{path} already holds a run: give --resume to go on with it, or choose another --out",
        path = .0.display())]
    Occupied(PathBuf),
    /// It holds something else.
    #[error("{path} is not empty and holds no run: choose another --out", path = .0.display())]
    Foreign(PathBuf),
    /// There is no run in it.
    #[error("{path} holds no run: there is no {PROVENANCE} in it", path = .0.display())]
    NoRun(PathBuf),
    /// The run in it has another plan.
    #[error("{path} holds a run with another plan ({field} differs): repeat the options it was started with, \
             or choose another --out", path = path.display())]
    OtherPlan {
        /// The folder.
        path: PathBuf,
        /// The first field that differs.
        field: Cow<'static, str>,
    },
    /// The run in it is of another study.
    #[error("{path} holds a run of `study {study}`: it has no such records", path = path.display())]
    OtherStudy {
        /// The folder.
        path: PathBuf,
        /// Which study.
        study: &'static str,
    },
    /// A file in it cannot be understood.
    #[error("{path}: {source}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: RecordError,
    },
    /// A record could not be read once it was written.
    #[error(
        "a measurement cannot be recorded so that it can be read again: {0}; what was measured before is kept: a defect"
    )]
    Unreadable(String),
    /// The operating system refused.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_owned();
    move |source| FolderError::Io { action, path, source }
}

/// A run folder that this process writes into, a record a line. No other can meanwhile.
#[derive(Debug)]
pub struct RunFolder<R = PointRecord> {
    path: PathBuf,
    provenance: Provenance,
    records: Vec<R>,
    results: File,
    histograms: File,
    /// Whether this process began the run; and made the folder.
    began: Began,
    _lock: Held,
}

/// What of a run folder this process has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    /// Nothing: the run is resumed.
    Nothing,
    /// The run, in a folder that was there.
    Run,
    /// The folder too.
    Folder,
}

impl<R: Record> RunFolder<R> {
    /// Begins a run in a folder that is empty or does not exist yet. A run that was killed before it had
    /// measured anything is replaced.
    ///
    /// # Errors
    /// The folder holds a run or anything else, is in use, or cannot be written.
    pub fn create(path: &Path, provenance: Provenance) -> Result<Self, FolderError> {
        check_study::<R>(path, &provenance)?;
        let began = if path.exists() { Began::Run } else { Began::Folder };
        fs::create_dir_all(path).map_err(io_error("make", path))?;
        let lock = lock(path)?;
        let results = fs::metadata(path.join(RESULTS)).map_or(0, |results| results.len());
        if path.join(PROVENANCE).exists() {
            if results > 0 || keeps_more::<R>(path) {
                return Err(FolderError::Occupied(path.to_owned()));
            }
        } else {
            refuse_foreign(path)?;
        }
        write_whole(&path.join(PROVENANCE), &provenance)?;
        Self::open(path, provenance, Vec::new(), 0, began, lock)
    }

    /// Removes the run, if this process began it and nothing has been measured; the folder too, if this
    /// process made it and nothing else is in it. Answers whether it did.
    pub fn abandon(self) -> bool {
        let abandons =
            self.began != Began::Nothing && self.records.is_empty() && !keeps_more::<R>(&self.path);
        if abandons {
            for name in [RESULTS, HISTOGRAMS, FENCE, LOG, PROVENANCE] {
                let _ = fs::remove_file(self.path.join(name));
            }
            if self.began == Began::Folder {
                let _ = fs::remove_dir(&self.path);
            }
        }
        abandons
    }

    /// Goes on with the run in a folder. What a kill left half-written is cut off.
    ///
    /// # Errors
    /// There is no run, its plan is not this one, it is in use or damaged.
    pub fn resume(path: &Path, provenance: &Provenance) -> Result<Self, FolderError> {
        if !path.join(PROVENANCE).exists() {
            return Err(FolderError::NoRun(path.to_owned()));
        }
        let lock = lock(path)?;
        let stored = read_provenance(path)?;
        if let Some(field) = first_difference(&stored, provenance) {
            return Err(FolderError::OtherPlan { path: path.to_owned(), field });
        }
        check_study::<R>(path, &stored)?;
        let (records, whole) = read_results(path, parse_records)?;
        Self::open(path, stored, records, whole as u64, Began::Nothing, lock)
    }

    fn open(
        path: &Path,
        provenance: Provenance,
        records: Vec<R>,
        whole: u64,
        began: Began,
        lock: Held,
    ) -> Result<Self, FolderError> {
        let append = |name| {
            let path = path.join(name);
            OpenOptions::new().create(true).append(true).open(&path).map_err(io_error("open", &path))
        };
        let (results, histograms) = (append(RESULTS)?, append(HISTOGRAMS)?);
        results.set_len(whole).map_err(io_error("cut", &path.join(RESULTS)))?;
        end_torn_line(&path.join(HISTOGRAMS), &histograms)?;
        Ok(Self { path: path.to_owned(), provenance, records, results, histograms, began, _lock: lock })
    }

    /// The folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the run is about.
    #[must_use]
    pub fn provenance(&self) -> &Provenance {
        &self.provenance
    }

    /// Changes what the run is about, also on disk; for what is known only once a guest has booted.
    ///
    /// # Errors
    /// The file cannot be written; the old one then is still whole.
    pub fn amend(&mut self, change: impl FnOnce(&mut Provenance)) -> Result<(), FolderError> {
        change(&mut self.provenance);
        write_whole(&self.path.join(PROVENANCE), &self.provenance)
    }

    /// What was measured so far.
    #[must_use]
    pub fn records(&self) -> &[R] {
        &self.records
    }

    /// Adds a record: its histograms to the HdrHistogram log, then the rest as one line, which
    /// counts only once it is whole.
    ///
    /// # Errors
    /// A file cannot be written, or the record could not be read again; nothing of it is written then.
    pub fn add(&mut self, mut record: R) -> Result<(), FolderError> {
        let log = histogram_log::take(&mut record);
        // One line that cannot be read makes a run of all that cannot: JSON has no number without end, and writes it as nothing.
        let unreadable = |error: serde_json::Error| FolderError::Unreadable(error.to_string());
        let mut line = serde_json::to_vec(&record).map_err(unreadable)?;
        serde_json::from_slice::<R>(&line).map_err(unreadable)?;
        let write = |file: &mut File, name: &str, bytes: &[u8]| {
            file.write_all(bytes)
                .and_then(|()| file.sync_data())
                .map_err(io_error("write", &self.path.join(name)))
        };
        write(&mut self.histograms, HISTOGRAMS, &log)?;
        line.push(b'\n');
        write(&mut self.results, RESULTS, &line)?;
        self.records.push(record);
        Ok(())
    }
}

/// A run as a reader sees it.
#[derive(Debug)]
pub struct LoadedRun<R = Vec<PointRecord>> {
    /// What it is about.
    pub provenance: Provenance,
    /// What was measured.
    pub records: R,
    /// Encoded latency histograms by the record's tag and direction, as in
    /// `native/.../0/read`.
    pub histograms: BTreeMap<String, String>,
}

/// Reads a run folder, also one that is being written or was left by a killed run.
///
/// # Errors
/// There is no run in it, or a file is damaged or of a later version.
pub fn load_run<R: Record>(path: &Path) -> Result<LoadedRun<Vec<R>>, FolderError> {
    let provenance = read_provenance(path)?;
    check_study::<R>(path, &provenance)?;
    let (records, _) = read_results(path, parse_records)?;
    Ok(LoadedRun { provenance, records, histograms: read_histograms(path) })
}

/// The same of whatever study.
///
/// # Errors
/// As [`load_run`].
pub fn load_any_run(path: &Path) -> Result<LoadedRun<Records>, FolderError> {
    let provenance = read_provenance(path)?;
    let (records, _) = read_results(path, |text| Records::parse(&provenance.plan, text))?;
    Ok(LoadedRun { provenance, records, histograms: read_histograms(path) })
}

fn check_study<R: Record>(path: &Path, provenance: &Provenance) -> Result<(), FolderError> {
    if R::follows(&provenance.plan) {
        return Ok(());
    }
    Err(FolderError::OtherStudy { path: path.to_owned(), study: provenance.plan.study() })
}

fn read_histograms(path: &Path) -> BTreeMap<String, String> {
    histogram_log::parse(&fs::read(path.join(HISTOGRAMS)).unwrap_or_default())
}

/// Refuses a folder that holds anything but what a torn start may have left.
fn refuse_foreign(path: &Path) -> Result<(), FolderError> {
    let foreign = fs::read_dir(path)
        .map_err(io_error("list", path))?
        .flatten()
        .any(|entry| ![RESULTS, HISTOGRAMS, LOG, HALF_WRITTEN].iter().any(|name| entry.file_name() == *name));
    if foreign { Err(FolderError::Foreign(path.to_owned())) } else { Ok(()) }
}

/// Whether a run has measured something that it keeps beside its results.
fn keeps_more<R: Record>(path: &Path) -> bool {
    R::BESIDE.iter().any(|name| path.join(name).exists())
}

/// Locks the folder itself, so that no file is needed for it.
fn lock(path: &Path) -> Result<Held, FolderError> {
    let held = Held::take(path).map_err(io_error("open", path))?;
    held.ok_or_else(|| FolderError::InUse(path.to_owned()))
}

/// What the run in a folder is about.
///
/// # Errors
/// There is no run in it, or its file is damaged or of a later version.
pub fn read_provenance(path: &Path) -> Result<Provenance, FolderError> {
    let name = path.join(PROVENANCE);
    let text = fs::read_to_string(&name).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FolderError::NoRun(path.to_owned()),
        _ => io_error("read", &name)(error),
    })?;
    parse_provenance(&text).map_err(|source| FolderError::Damaged { path: name, source })
}

/// Reads the results with `parse`, and how many bytes of them are whole lines.
fn read_results<R>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<(R, usize), RecordError>,
) -> Result<(R, usize), FolderError> {
    let name = path.join(RESULTS);
    let text = match fs::read(&name) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(io_error("read", &name)(error)),
    };
    parse(&text).map_err(|source| FolderError::Damaged { path: name, source })
}

/// Writes a value as JSON beside the file and renames, so that the file is whole at any moment.
///
/// # Errors
/// The file cannot be written; an earlier one then is still whole.
pub fn write_whole<T: Serialize>(path: &Path, value: &T) -> Result<(), FolderError> {
    let beside = path.with_extension("json.new");
    let write = || -> io::Result<()> {
        let mut file = File::create(&beside)?;
        serde_json::to_writer_pretty(&mut file, value)?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    };
    write().map_err(io_error("write", path))
}

/// The first part of a run that another one does not share.
fn first_difference(stored: &Provenance, wanted: &Provenance) -> Option<Cow<'static, str>> {
    let differs = (!stored.host.is_same_host(&wanted.host)).then_some("the host".into());
    stored.plan.first_difference(&wanted.plan).or(differs)
}

/// A kill may have left a line without its end: the next one must not continue it.
fn end_torn_line(path: &Path, file: &File) -> Result<(), FolderError> {
    let bytes = fs::read(path).map_err(io_error("read", path))?;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |index| index + 1);
    file.set_len(whole as u64).map_err(io_error("cut", path))
}

#[cfg(test)]
#[path = "folder_tests.rs"]
mod tests;

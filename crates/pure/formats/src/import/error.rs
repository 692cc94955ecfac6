//! Why a file cannot be imported, what is remarked about it and where, and which formats there are.

use std::fmt;

use serde::Serialize;
use thiserror::Error;
use virtbench_units::format_bytes;
use virtbench_workload::LoadError;

/// A file that cannot be imported.
#[derive(Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "the messages say what each field is")]
pub enum ImportError {
    /// It is too large.
    #[error("the file has {bytes} bytes; a load takes at most {}", format_bytes(MAX_FILE_BYTES as u64))]
    TooLarge {
        /// Its size, in bytes.
        bytes: usize,
    },
    /// It is not a text.
    #[error("the file has a NUL byte in line {line}: save it as UTF-8 text")]
    NotText {
        /// The line, from 1.
        line: usize,
    },
    /// No format fits.
    #[error(
        "this is no Iometer, fio, diskspd, Vdbench or JSON load that can be recognised: name its `format`"
    )]
    UnknownFormat,
    /// It is damaged.
    #[error("{at}: {why}")]
    Syntax {
        at: Location,
        /// What is wrong.
        why: String,
    },
    /// It has more of something than is supported.
    #[error("{at}: more than {most} {what}")]
    TooMany {
        /// Where the first one too many stands.
        at: Location,
        what: &'static str,
        /// How many are allowed.
        most: usize,
    },
    /// It says things that cannot be honoured.
    #[error("{}", list(remarks, *hopeless))]
    NotUnderstood {
        /// All of them, in the file's order.
        remarks: Vec<Remark>,
        /// How many of them not even a lenient import passes over.
        hopeless: usize,
    },
    /// It has no job.
    #[error("the {0} has no job to run")]
    Empty(Format),
    /// A job asks for an impossible load.
    #[error("job {job:?}: {source}")]
    Load {
        /// The job's name.
        job: String,
        /// What is impossible.
        source: LoadError,
    },
}

fn list(remarks: &[Remark], hopeless: usize) -> String {
    let mut text = remarks.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    if hopeless < remarks.len() {
        text.push_str("\nwith `lenient` the load runs without");
        text.push_str(if hopeless > 0 { " what it can" } else { "" });
    }
    text
}

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;

/// The most jobs of one file.
pub const MAX_JOBS: usize = 256;

/// Region of a job whose file does not say, until the target's own size is known, in bytes.
pub(super) const ASSUMED_REGION_BYTES: u64 = 1 << 30;

/// Where in a file something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Location {
    /// Line, from 1.
    pub line: usize,
    /// Which argument of a command line, from 1; the command itself is 0.
    pub argument: Option<usize>,
}

impl Location {
    pub(crate) fn line(line: usize) -> Self {
        Self { line, argument: None }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        self.argument.map_or(Ok(()), |argument| write!(f, ", argument {argument}"))
    }
}

/// Something a file says that was not understood, or that this engine cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Where it stands.
    pub at: Location,
    /// What it is, and why it cannot be honoured.
    pub what: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

/// Remarks and notes beyond this many are counted, not kept.
const MOST: usize = 50;

/// Notes and remarks, each kept once, bounded.
#[derive(Debug, Default)]
pub struct Findings {
    notes: Vec<String>,
    ignored: Vec<Remark>,
    more_ignored: usize,
    hopeless: Vec<Remark>,
    left_out: Vec<(String, usize)>,
}

impl Findings {
    /// A difference the user should know.
    pub fn note(&mut self, text: impl Into<String>) {
        let text = text.into();
        if self.notes.len() < MOST && !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    /// An option that changes nothing about the load.
    pub fn leave_out(&mut self, name: &str, line: usize) {
        let entry = (name.to_owned(), line);
        if self.left_out.len() < MOST && !self.left_out.contains(&entry) {
            self.left_out.push(entry);
        }
    }

    /// Something that cannot be honoured.
    pub fn ignore(&mut self, at: Location, what: impl Into<String>) {
        let remark = Remark { at, what: what.into() };
        if self.ignored.contains(&remark) {
        } else if self.ignored.len() < MOST {
            self.ignored.push(remark);
        } else {
            self.more_ignored += 1;
        }
    }

    /// Something that makes the file one that cannot be run, whatever the caller tolerates.
    pub fn refuse(&mut self, at: Location, what: impl Into<String>) {
        let remark = Remark { at, what: what.into() };
        if self.hopeless.len() < MOST && !self.hopeless.contains(&remark) {
            self.hopeless.push(remark);
        }
    }

    /// The notes, the remarks in the file's order, and how many of these are hopeless.
    pub fn into_parts(mut self) -> (Vec<String>, Vec<Remark>, usize) {
        if !self.left_out.is_empty() {
            let names: Vec<String> =
                self.left_out.iter().map(|(name, line)| format!("{name} (line {line})")).collect();
            self.notes.push(format!("left out, because it does not change the load: {}", names.join(", ")));
        }
        self.ignored.sort_by_key(|remark| remark.at);
        if let (Some(last), true) = (self.ignored.last_mut(), self.more_ignored > 0) {
            last.what.push_str(&format!(" (and {} more like these)", self.more_ignored));
        }
        let hopeless = self.hopeless.len();
        self.ignored.append(&mut self.hopeless);
        self.ignored.sort_by_key(|remark| remark.at);
        (self.notes, self.ignored, hopeless)
    }
}

/// A format of loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An Iometer configuration file (`.icf`).
    Icf,
    /// A fio job file.
    Fio,
    /// fio command lines, one a line.
    FioCommand,
    /// diskspd command lines, one a line, or an XML profile.
    Diskspd,
    /// A Vdbench parameter file.
    Vdbench,
    /// virtbench's own (docs/formats.md).
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Icf => "Iometer configuration",
            Self::Fio => "fio job file",
            Self::FioCommand => "fio command line",
            Self::Diskspd => "diskspd load",
            Self::Vdbench => "Vdbench parameter file",
            Self::Json => "JSON load",
        })
    }
}

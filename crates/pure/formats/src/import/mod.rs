//! Loads out of other tools' files.

mod detect;
mod diskspd;
mod findings;
mod fio;
mod icf;
mod json;
mod schedule;

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use virtbench_units::format_bytes;
use virtbench_workload::{LoadError, LoadSpec, Placement};

pub use detect::detect;
use findings::Findings;
use fio::processors;
pub(crate) use json::{FORMAT_VERSION, JsonJob, JsonLoad};
pub use schedule::{Ends, FlowPart, Schedule, SteadyEnd, SteadyFigure, Surroundings};

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: usize = 1 << 20;
/// The most jobs of one file.
pub const MAX_JOBS: usize = 256;
/// Region of a job whose file does not say, until the target's own size is known, in bytes.
const ASSUMED_REGION_BYTES: u64 = 1 << 30;

/// A format of loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// An Iometer configuration file (`.icf`).
    Icf,
    /// A fio job file.
    Fio,
    /// diskspd command lines, one a line.
    Diskspd,
    /// virtbench's own (docs/formats.md).
    Json,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Icf => "Iometer configuration",
            Self::Fio => "fio job file",
            Self::Diskspd => "diskspd command line",
            Self::Json => "JSON load",
        })
    }
}

/// Where in a file something stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Which argument of a command line, from 1; the command itself is 0.
    pub argument: Option<usize>,
}

impl Place {
    pub(crate) fn line(line: usize) -> Self {
        Self { line, argument: None }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}", self.line)?;
        self.argument.map_or(Ok(()), |argument| write!(f, ", argument {argument}"))
    }
}

/// Something a file says that was not understood, or that this engine cannot do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Remark {
    /// Where it stands.
    pub at: Place,
    /// What it is, and why it cannot be honoured.
    pub what: String,
}

impl fmt::Display for Remark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.what)
    }
}

/// One job of a file: one load on one target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ImportedJob {
    /// Its name in the file.
    pub name: String,
    /// The load. Its region is `size_bytes`, or a stand-in of 1 GiB where that is absent: the
    /// target's own size takes its place.
    pub load: LoadSpec,
    /// The target, as the file names it.
    pub target: Option<String>,
    /// How much of the target is used from its start, in bytes; the whole of it where absent.
    pub size_bytes: Option<u64>,
    /// Jobs of one group run at the same time in the tool the file was written for; groups run one
    /// after another, from 0.
    pub group: u32,
    /// When it starts and what ends it, beside that.
    #[serde(default)]
    pub schedule: Schedule,
}

/// What a file asks for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ImportedLoad {
    /// The jobs, in the file's order; at least one.
    pub jobs: Vec<ImportedJob>,
    /// What differs between the tool the file was written for and this one, and what was left out
    /// because it changes no load.
    pub notes: Vec<String>,
    /// What was not understood; always empty unless the import was lenient.
    pub ignored: Vec<Remark>,
}

/// A file that cannot be imported.
#[derive(Debug, Error, PartialEq)]
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
        "this is no Iometer, fio, diskspd or JSON load that can be recognised: name the format with --format"
    )]
    UnknownFormat,
    /// It is damaged.
    #[error("{at}: {why}")]
    Syntax {
        /// Where.
        at: Place,
        /// What is wrong.
        why: String,
    },
    /// It has more of something than can be meant.
    #[error("{at}: more than {most} {what}")]
    TooMany {
        /// Where the first one too many stands.
        at: Place,
        /// Of what.
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
        text.push_str("\nwith --lenient the load runs without");
        text.push_str(if hopeless > 0 { " what it can" } else { "" });
    }
    text
}

/// Reads a load of this format, or of the one its content shows.
///
/// # Errors
/// The file is too large, no text or damaged; it has no job or an impossible one; or, unless
/// `lenient`, it says something that was not understood.
pub fn import(bytes: &[u8], format: Option<Format>, lenient: bool) -> Result<ImportedLoad, ImportError> {
    import_within(bytes, format, lenient, &Surroundings::default())
}

/// As [`import`], of a file that may refer to its surroundings.
///
/// # Errors
/// As [`import`].
pub fn import_within(
    bytes: &[u8],
    format: Option<Format>,
    lenient: bool,
    surroundings: &Surroundings<'_>,
) -> Result<ImportedLoad, ImportError> {
    if bytes.len() > MAX_FILE_BYTES {
        return Err(ImportError::TooLarge { bytes: bytes.len() });
    }
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        let line = 1 + bytes[..at].iter().filter(|byte| **byte == b'\n').count();
        return Err(ImportError::NotText { line });
    }
    // Older tools wrote names in the code page of their day; those characters cost nothing here.
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let format = format.or_else(|| detect(text)).ok_or(ImportError::UnknownFormat)?;
    let mut findings = Findings::default();
    let jobs = match format {
        Format::Icf => icf::read(text, &mut findings)?,
        Format::Fio => fio::read(text, surroundings, &mut findings)?,
        Format::Diskspd => diskspd::read(text, &mut findings)?,
        Format::Json => json::read(text)?,
    };
    let (notes, ignored, hopeless) = findings.into_parts();
    if hopeless > 0 || (!lenient && !ignored.is_empty()) {
        return Err(ImportError::NotUnderstood { remarks: ignored, hopeless });
    }
    if jobs.is_empty() {
        return Err(ImportError::Empty(format));
    }
    for job in &jobs {
        job.load.validate().map_err(|source| ImportError::Load { job: job.name.clone(), source })?;
    }
    Ok(ImportedLoad { jobs, notes, ignored })
}

/// The coarsest alignment with which a placement's strides can be kept: other tools let a stride be
/// any multiple of a sector, whatever the block size.
fn common_alignment(align_bytes: u64, placement: Placement) -> u64 {
    let (Placement::Strided { stride_bytes } | Placement::Backward { stride_bytes }) = placement else {
        return align_bytes;
    };
    let (mut larger, mut smaller) = (align_bytes, stride_bytes);
    while smaller > 0 {
        (larger, smaller) = (smaller, larger % smaller);
    }
    larger
}

#[cfg(test)]
#[path = "import_tests.rs"]
mod tests;

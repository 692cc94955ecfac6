//! Why a file cannot be imported.

use thiserror::Error;
use virtbench_units::format_bytes;
use virtbench_workload::LoadError;

use super::format::Format;
use super::limits::MAX_FILE_BYTES;
use super::remark::{Location, Remark};

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

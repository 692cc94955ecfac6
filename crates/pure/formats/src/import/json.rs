//! virtbench's own format: a serialised load with its target.

use serde::{Deserialize, Serialize};
use virtbench_workload::LoadSpec;

use super::{ASSUMED_REGION_BYTES, ImportError, ImportedJob, Location, MAX_JOBS, Schedule};

/// Version of the format, raised when a field changes its meaning.
pub const FORMAT_VERSION: u32 = 1;

/// The file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonLoad {
    /// [`FORMAT_VERSION`].
    pub format: u32,
    /// The jobs, one after another.
    pub jobs: Vec<JsonJob>,
}

/// One job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JsonJob {
    /// Its name.
    pub name: String,
    /// The target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// How much of the target is used, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The load, whose region follows from the size.
    pub load: LoadSpec,
}

/// Reads a JSON load. serde_json bounds the depth of nesting itself.
pub fn read(text: &str) -> Result<Vec<ImportedJob>, ImportError> {
    let file: JsonLoad = serde_json::from_str(text).map_err(|error| ImportError::Syntax {
        at: Location::line(error.line()),
        why: format!("{error}; docs/formats.md describes the format"),
    })?;
    if file.format != FORMAT_VERSION {
        let why =
            format!("format {} is not known here, only {FORMAT_VERSION}: update virtbench", file.format);
        return Err(ImportError::Syntax { at: Location::line(1), why });
    }
    if file.jobs.len() > MAX_JOBS {
        return Err(ImportError::TooMany { at: Location::line(1), what: "jobs", most: MAX_JOBS });
    }
    let jobs = file.jobs.into_iter().zip(0u32..);
    Ok(jobs
        .map(|(JsonJob { name, target, size_bytes, mut load }, group)| {
            load.region_bytes = size_bytes.unwrap_or(ASSUMED_REGION_BYTES);
            ImportedJob { name, load, target, size_bytes, group, schedule: Schedule::default() }
        })
        .collect())
}

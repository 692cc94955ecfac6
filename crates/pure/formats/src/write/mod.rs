//! Loads into other tools' formats.

mod fio;
mod icf;

use thiserror::Error;
use virtbench_workload::AccessSpec;

use crate::import::{FORMAT_VERSION, ImportedJob, JsonJob, JsonLoad};
pub use fio::write_fio;
pub use icf::write_icf;

/// A load that a format cannot say.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("job {job:?}: {tool} cannot say {what}")]
pub struct Inexpressible {
    /// The job's name.
    pub job: String,
    /// The tool whose format it is.
    pub tool: &'static str,
    /// What cannot be said.
    pub what: String,
}

/// Writes virtbench's own format (docs/formats.md).
///
/// # Errors
/// Only where a number is not finite, which a valid load does not have.
pub fn write_json(jobs: &[ImportedJob]) -> Result<String, serde_json::Error> {
    let jobs = jobs.iter().cloned().map(|ImportedJob { name, load, target, size_bytes, .. }| JsonJob {
        name,
        target,
        size_bytes,
        load,
    });
    let mut text = serde_json::to_string_pretty(&JsonLoad { format: FORMAT_VERSION, jobs: jobs.collect() })?;
    text.push('\n');
    Ok(text)
}

/// Refuses with the job and the tool named.
struct Refusal<'a> {
    job: &'a str,
    tool: &'static str,
}

impl Refusal<'_> {
    fn unless(&self, can: bool, what: impl Into<String>) -> Result<(), Inexpressible> {
        if can { Ok(()) } else { Err(self.error(what)) }
    }

    fn error(&self, what: impl Into<String>) -> Inexpressible {
        Inexpressible { job: self.job.to_owned(), tool: self.tool, what: what.into() }
    }

    /// A number of whole units.
    fn whole(&self, ns: u64, unit_ns: u64, what: &str) -> Result<u64, Inexpressible> {
        self.unless(ns.is_multiple_of(unit_ns), format!("a {what} of {ns} ns"))?;
        Ok(ns / unit_ns)
    }

    /// A name that stands on a line of its own.
    fn name(&self, forbidden: &[char]) -> Result<&str, Inexpressible> {
        let name = self.job.trim();
        let plain = !name.is_empty()
            && name.len() == self.job.len()
            && !name.contains(|c: char| c.is_control() || forbidden.contains(&c));
        self.unless(plain, "that name")?;
        Ok(name)
    }
}

/// Whether all lines agree in everything but size, share, direction and alignment to the size.
fn alike(access: &AccessSpec) -> bool {
    access.lines.first().is_none_or(|first| {
        access.lines.iter().all(|line| {
            line.random_percent.to_bits() == first.random_percent.to_bits()
                && line.delay_ns == first.delay_ns
                && line.burst == first.burst
                && line.placement == first.placement
                && line.trim_percent.to_bits() == first.trim_percent.to_bits()
        })
    })
}

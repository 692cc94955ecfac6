//! What a load is applied to, and the rules that protect what is already there.

mod alignment;
mod error;
mod guard;
mod open;
mod prepare;

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use virtbench_record::{TargetFacts, TargetKind};
use virtbench_units::format_bytes;
use virtbench_workload::LoadSpec;

pub use error::TargetError;

/// The name that stands for the null target.
pub(crate) const NULL: &str = "null";

/// What is asked of a target before a load.
#[derive(Debug, Clone)]
pub struct TargetRequest {
    /// A file, a block device, or `null`.
    pub path: PathBuf,
    /// How many bytes of it are used, from its start; a file that does not exist is made this long.
    /// Without it an existing target is used whole.
    pub size_bytes: Option<u64>,
    /// Whether to bypass the page cache.
    pub direct: bool,
    /// Whether the load reads.
    pub reads: bool,
    /// Whether the load writes.
    pub writes: bool,
    /// Whether data that virtbench did not make may be overwritten.
    pub allow_overwrite: bool,
}

/// A target that is open and ready to be loaded.
#[derive(Debug, Clone)]
pub struct Target {
    file: Option<Arc<File>>,
    facts: TargetFacts,
    notes: Vec<String>,
}

impl Target {
    /// Opens what the request names, makes and writes a file that does not exist, and refuses
    /// whatever would harm foreign data. `on_progress` is told how many bytes of how many have
    /// been written; when it answers `false`, writing ends with [`TargetError::Interrupted`].
    ///
    /// # Errors
    /// See [`TargetError`]; a file that could not be written whole is removed again.
    pub fn open(
        request: &TargetRequest,
        on_progress: impl FnMut(u64, u64) -> bool,
    ) -> Result<Self, TargetError> {
        open::open(request, on_progress)
    }

    /// The target as it was found.
    #[must_use]
    pub fn facts(&self) -> &TargetFacts {
        &self.facts
    }

    /// What a reader of the results should know about it.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The open file, or nothing for the null target.
    pub(crate) fn file(&self) -> Option<Arc<File>> {
        self.file.clone()
    }

    /// Checks that the load's sizes and alignments are possible here.
    pub(crate) fn check_fit(&self, spec: &LoadSpec) -> Result<(), String> {
        let TargetFacts { kind, size_bytes, direct, alignment_bytes, .. } = self.facts;
        if spec.region_bytes > size_bytes {
            return Err(format!(
                "the load uses {} of a target of {}",
                format_bytes(spec.region_bytes),
                format_bytes(size_bytes)
            ));
        }
        if kind == TargetKind::Null || !direct {
            return Ok(());
        }
        let unit = u64::from(alignment_bytes);
        let misfit = spec
            .access
            .lines
            .iter()
            .flat_map(|line| [("--bs", line.size_bytes), ("--align", line.align_bytes)])
            .find(|(_, bytes)| !bytes.is_multiple_of(unit));
        misfit.map_or(Ok(()), |(flag, bytes)| {
            Err(format!(
                "{flag} {bytes}: direct I/O on {} works in multiples of {unit} bytes; choose one, or use --buffered",
                self.facts.path
            ))
        })
    }
}

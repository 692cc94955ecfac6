//! What a load is applied to, and the rules that protect what is already there.

mod error;
#[cfg(unix)]
mod linux;
#[cfg(feature = "network-targets")]
mod network;
mod open;
mod prepare;
#[cfg(windows)]
mod windows;

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use virtbench_record::TargetFacts;
use virtbench_units::format_bytes;
use virtbench_workload::{FaultSpec, LoadSpec, WriteSync};

pub use error::{TargetError, TargetName};
#[cfg(unix)]
pub use linux::is_test_file;
#[cfg(windows)]
pub use windows::is_test_file;

use crate::system::drop_cache;
#[cfg(feature = "network-targets")]
use crate::{nbd::NbdSource, vhost_user::VhostUserSource};

/// What is asked of a target before a load.
#[derive(Debug, Clone)]
pub struct TargetRequest {
    /// What [`TargetName::parse`] understands: a file, a block device, `null`, an NBD URI, or
    /// `vhost-user:SOCKET`.
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
    source: Source,
    facts: TargetFacts,
    notes: Vec<String>,
    faults: Option<FaultSpec>,
    ledger: Option<PathBuf>,
}

/// What operations go to. Each kind has a backend; `backend::Opened` brings them together.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Nothing.
    Null,
    /// An open file or block device.
    File(Arc<File>),
    /// An export of an NBD server.
    #[cfg(feature = "network-targets")]
    Nbd(Arc<NbdSource>),
    /// A vhost-user-blk server.
    #[cfg(feature = "network-targets")]
    VhostUser(Arc<VhostUserSource>),
}

impl Target {
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

    /// Drops what the page cache holds of a file or device and has written back already.
    ///
    /// # Errors
    /// The system refuses, or has no such call.
    pub fn drop_cache(&self) -> io::Result<()> {
        match self.source() {
            Source::File(file) => drop_cache(file),
            _ => Ok(()),
        }
    }

    /// Puts faults between the load and this target.
    #[must_use]
    pub fn with_faults(mut self, faults: FaultSpec) -> Self {
        self.notes.push("faults were injected: the figures do not describe the target".into());
        self.faults = Some(faults);
        self
    }

    /// The faults between the load and this target.
    pub(crate) fn faults(&self) -> Option<&FaultSpec> {
        self.faults.as_ref()
    }

    /// Keeps the ledger of what verified loads write here at `path`, for [`crate::verify`].
    #[must_use]
    pub fn with_ledger(self, path: PathBuf) -> Self {
        Self { ledger: Some(path), ..self }
    }

    /// Where that ledger is.
    pub(crate) fn ledger_path(&self) -> Option<&Path> {
        self.ledger.as_deref()
    }

    /// Makes everything durable that has been written to a file or device.
    ///
    /// # Errors
    /// The target could not write it.
    pub(crate) fn flush(&self) -> io::Result<()> {
        match &self.source {
            Source::File(file) => file.sync_all(),
            _ => Ok(()),
        }
    }

    /// The longest request that the target takes, in bytes.
    pub(crate) fn max_request_bytes(&self) -> u64 {
        match &self.source {
            Source::Null | Source::File(_) => u64::MAX,
            #[cfg(feature = "network-targets")]
            Source::Nbd(source) => source.export().max_payload_bytes.into(),
            #[cfg(feature = "network-targets")]
            Source::VhostUser(source) => source.facts().max_request_bytes(),
        }
    }

    /// What operations go to.
    pub(crate) fn source(&self) -> &Source {
        &self.source
    }

    /// Checks that the load's sizes and alignments are possible here.
    pub(crate) fn check_fit(&self, spec: &LoadSpec) -> Result<(), String> {
        let TargetFacts { size_bytes, alignment_bytes, .. } = self.facts;
        if spec.end_bytes() > size_bytes {
            return Err(format!(
                "the load uses {} of a target of {}",
                format_bytes(spec.end_bytes()),
                format_bytes(size_bytes)
            ));
        }
        match &self.source {
            Source::Null => return Ok(()),
            Source::File(_) => {}
            #[cfg(feature = "network-targets")]
            Source::Nbd(source) => source.check_fit(spec)?,
            #[cfg(feature = "network-targets")]
            Source::VhostUser(source) => source.check_fit(spec)?,
        }
        if spec.write_sync != WriteSync::None && !self.facts.kind.is_local() {
            return Err(format!(
                "writes that are durable before they complete cannot be asked of {}: leave out sync=",
                self.facts.path
            ));
        }
        // 1 where the page cache takes anything.
        let unit = u64::from(alignment_bytes);
        if let Some(trace) = &spec.trace {
            return trace.check_alignment(unit).map_err(|error| error.to_string());
        }
        let misfit = spec
            .access
            .lines
            .iter()
            .flat_map(|line| [("--bs", line.size_bytes), ("--align", line.align_bytes)])
            .chain([("a start of", spec.start_bytes), ("a worker's step of", spec.worker_step_bytes)])
            .find(|(_, bytes)| !bytes.is_multiple_of(unit));
        misfit.map_or(Ok(()), |(flag, bytes)| {
            let buffered = if self.facts.kind.is_local() { ", or use --buffered" } else { "" };
            Err(format!(
                "{flag} {bytes}: I/O on {} works in multiples of {unit} bytes; choose one{buffered}",
                self.facts.path
            ))
        })
    }
}

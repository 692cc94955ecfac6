//! What applications are measured with, and how progress is told.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::ApplicationsError;
use crate::event::{Event, Observer};
use crate::guests::GuestOptions;

/// The VM that applications are run in.
#[derive(Debug, Clone)]
pub struct VmOptions {
    /// Its processors, memory, kernel and accelerator.
    pub guest: GuestOptions,
    /// Size of its disk, in bytes.
    pub disk_bytes: u64,
    /// Adapter of its disk.
    pub adapter: String,
    /// File system on its disk, `ext4` or `xfs`.
    pub filesystem: String,
    /// Folder for its disk: the storage under it is what is measured, natively too.
    pub folder: PathBuf,
    /// How long a command may take there, in nanoseconds.
    pub limit_ns: u64,
    /// Reference applications as TOML, instead of those that virtbench brings along.
    pub references: Option<String>,
}

/// Whom to tell of progress, and who may ask to stop.
pub struct Progress<'a> {
    /// Set when it is to stop.
    pub stop: &'a AtomicBool,
    /// Told what happens.
    pub observer: &'a mut dyn Observer,
}

impl Progress<'_> {
    /// Says what is being done.
    pub fn doing(&mut self, what: &str) {
        self.observer.event(Event::Doing(what));
    }

    /// Says what a user would like to know.
    pub fn remark(&mut self, what: &str) {
        self.observer.event(Event::Remark(what));
    }

    /// So many measurements are done and so many left at most; where nobody knows, those planned stand, and one more.
    pub(crate) fn done(&mut self, done: u64, left: Option<u64>, planned: u64) {
        let total = left.map_or(planned.max(done + 1), |left| done + left);
        self.observer.event(Event::Done { done, total });
    }

    /// # Errors
    /// It is to stop.
    pub(crate) fn check(&self) -> Result<(), ApplicationsError> {
        if self.stop.load(Ordering::Relaxed) { Err(ApplicationsError::Stopped) } else { Ok(()) }
    }
}

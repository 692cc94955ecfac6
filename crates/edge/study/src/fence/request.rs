//! What disks of the fence a study wants.

use std::path::{Path, PathBuf};

use virtbench_lab::{Adapter, DiskSettings};
use virtbench_workload::AccessSpec;

use super::options::FenceOptions;
use crate::disks::disk::Contents;

/// What disks are wanted.
#[derive(Debug, Clone, Copy)]
pub struct FenceRequest<'a> {
    /// Where the devices' files go.
    pub folder: &'a Path,
    /// Of which run, for the files' names.
    pub run_name: &'a str,
    /// The guests' adapter.
    pub adapter: &'static Adapter,
    /// What is set about it.
    pub settings: &'a DiskSettings,
    /// The daemon's devices and scheduler.
    pub options: &'a FenceOptions,
    /// A disk for each.
    pub names: &'a [String],
    /// Size of each, in bytes.
    pub size_bytes: u64,
    /// What is on them.
    pub contents: Contents,
    /// File systems that the disks begin with, one for each, no larger than they; none where `contents` says what is on them.
    pub images: &'a [PathBuf],
    /// With which accesses caches are filled, where the disks are to be written; random reads without.
    pub warm: Option<&'a AccessSpec>,
    /// Where the daemon's configuration is kept for the reader.
    pub configuration: Option<&'a Path>,
}

//! A VM in which workloads on files and commands are run.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use virtbench_study::{VmOptions, read_user_file};
use virtbench_units::{parse_bytes, parse_positive_duration_ns};

use super::GuestArgs;
use super::qemu::QemuArgs;
use crate::exit::{Failure, Kind};

/// What the VM is made of.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "The VM that it is run in")]
pub struct VmArgs {
    /// Memory of the VM
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    pub memory: u64,
    /// Size of its disk
    #[arg(long, value_name = "SIZE", default_value = "1GiB", value_parser = parse_bytes)]
    pub size: u64,
    /// Adapter of its disk
    #[arg(long, value_name = "ADAPTER", default_value = virtbench_lab::DEFAULT_ADAPTER.name)]
    pub adapter: String,
    /// File system on its disk
    #[arg(long, value_name = "ext4|xfs", default_value = "ext4")]
    pub filesystem: String,
    /// Folder for its disk; the storage under it is what is measured [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// What runs the VM
    #[command(flatten)]
    pub qemu: QemuArgs,
    /// Reference applications, instead of those that virtbench brings along
    #[arg(long, value_name = "FILE", hide = true)]
    pub references: Option<PathBuf>,
    /// How long it may take there
    #[arg(long, value_name = "TIME", default_value = "10m", value_parser = parse_positive_duration_ns)]
    pub limit: u64,
}

impl VmArgs {
    /// The folder for its disk.
    ///
    /// # Errors
    /// It is the current one, which is gone.
    pub fn folder(&self) -> Result<PathBuf, Failure> {
        let folder = self.target_dir.clone().map_or_else(std::env::current_dir, Ok);
        Ok(folder.context("cannot find the current folder")?)
    }

    /// The VM, with so many processors, its disk in `folder`.
    ///
    /// # Errors
    /// The file of reference applications cannot be read.
    pub fn options(&self, vcpus: u32, folder: PathBuf) -> Result<VmOptions, Failure> {
        let read = |path: &PathBuf| {
            read_user_file(path)
                .map_err(|error| Failure::message(Kind::Usage, format!("{}: {error}", path.display())))
        };
        Ok(VmOptions {
            guest: self.guest(vcpus).options(),
            disk_bytes: self.size,
            adapter: self.adapter.clone(),
            filesystem: self.filesystem.clone(),
            folder,
            limit_ns: self.limit,
            references: self.references.as_ref().map(read).transpose()?,
        })
    }

    /// The guest, with so many processors.
    pub fn guest(&self, vcpus: u32) -> GuestArgs {
        GuestArgs { vcpus, memory: self.memory, qemu: self.qemu.clone() }
    }
}

/// `predict --verify`
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Trying it")]
pub struct VerifyArgs {
    /// Run the application in the VM, and say how far the prediction was off. The profile knows the command
    /// and what to read its throughput from (profile --metric)
    #[arg(long)]
    pub verify: bool,
    /// A file or folder that the command needs in the VM, under the same name; its program and shared
    /// libraries are found without; may be repeated
    #[arg(long, value_name = "PATH", requires = "verify")]
    pub with: Vec<PathBuf>,
    /// Begin with a copy of this folder's files on the VM's disk, where the command is run
    #[arg(long, value_name = "DIR", requires = "verify")]
    pub disk_from: Option<PathBuf>,
}

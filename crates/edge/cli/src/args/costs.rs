//! `virtbench costs`

use std::path::PathBuf;

use clap::Args;

use super::vm::VmArgs;

/// `virtbench costs`
#[derive(Debug, Args)]
#[command(after_help = "\
The same pieces of work natively and in a VM: twelve computations for user code, small system calls for \
kernel code, large ones for copying, flushed writes for waiting. `predict --costs FILE` multiplies each part of \
an application's time by what it costs in the VM.

Examples:
  virtbench costs --out costs.json
  virtbench predict --profile db.json --costs costs.json --verify")]
pub struct CostsArgs {
    /// Virtual processors of the VM
    #[arg(long, value_name = "N", default_value = "2")]
    pub vcpus: u32,
    /// The VM
    #[command(flatten)]
    pub vm: VmArgs,
    /// Write them as JSON here
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

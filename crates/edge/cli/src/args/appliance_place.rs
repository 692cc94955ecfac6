//! Where an appliance runs that is compared natively and in a VM.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::qemu::QemuArgs;

/// What its VM is made of, how that is reached, and where its data lie.
#[derive(Debug, Clone, Args)]
pub struct AppliancePlaceArgs {
    /// How the VM is reached: user needs no rights, tap is faster and needs root
    #[arg(long, value_enum, default_value = "user")]
    pub network: NetworkArg,
    /// What runs the VM
    #[command(flatten)]
    pub qemu: QemuArgs,
    /// Folder for test disks and data; the storage under it is what is measured [default: the run folder]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
}

/// How a VM is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NetworkArg {
    /// QEMU's user-mode network
    User,
    /// A tap device in a network namespace of the run's own
    Tap,
}

impl NetworkArg {
    /// Its name in a plan.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Tap => "tap",
        }
    }
}

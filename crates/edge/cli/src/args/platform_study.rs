//! `virtbench study platform`

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use virtbench_study::{PlatformOptions, PlatformProfile};

use super::folder::FolderArgs;
use super::qemu::AcceleratorArg;

/// `virtbench study platform`
#[derive(Debug, Args)]
#[command(after_help = "\
Each domain is measured by a study that is there by itself, natively and in VMs: storage by native-vs-vm, the network by network, \
memory, the processor and storage beside neighbours by neighbours, a database by oltp, Redis by application. Disk adapters, management \
operations (where libvirt is), tiles and desktops have no native counterpart: they are figures by themselves. Their run folders lie in \
that of the platform, each can be opened and gone on with alone, and the report card links to their pages. What this host or this \
build does not have is left out, and said.

A domain's figure is the geometric mean of its ratios to this host, each turned so that more is better. The score is the weighted \
geometric mean over the domains; it says of how many it is, and is not comparable with one of others.

  minute  storage, network, memory, processor: under two minutes
  quick   the same with more points and VMs, neighbours, adapters, database, application and operations: under half an hour; the first \
run builds the appliances besides
  full    the same for as long as the papers measured, tiles and desktops: hours, and how many is said before

With --environment twice, the second is compared with the first, in place of VMs with this host; with one, it is compared with this host. \
Only storage, memory, processor and neighbours can be measured so. With --reference the figures of VMs are compared with those of \
another run of study platform, which has to have measured the same; then domains without a native counterpart have a part in the score, too.

Weights are a TOML file: a line such as `storage = 2` for each domain that does not count once; 0 leaves one out of the score.

Examples:
  virtbench study platform
  virtbench study platform --profile quick --accelerator kvm --out host-a
  virtbench study platform --domains storage,network --repetitions 5
  virtbench compare host-a host-b
  virtbench study platform --reference host-a --out host-b
  virtbench study platform --environment native: --environment ssh://root@metal/srv
  virtbench study platform --resume --out host-a")]
pub struct PlatformStudyArgs {
    /// How much is measured
    #[arg(long, value_enum, default_value = "minute")]
    pub profile: ProfileArg,
    /// Only these domains [default: all of the profile]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub domains: Vec<String>,
    /// How often each domain is measured, each time between machines that are started for it
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub repetitions: u32,
    /// How much each domain counts in the score: a TOML file
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// What is compared: two environments, the base first, or one with this host: [NAME=]URI or a name from virtbench.toml
    #[arg(long, value_name = "URI|NAME", num_args = 1, conflicts_with = "reference")]
    pub environment: Vec<String>,
    /// Another run of study platform, with whose figures VMs are compared
    #[arg(long, value_name = "RUN")]
    pub reference: Option<PathBuf>,
    /// What executes the VMs' instructions
    #[arg(long, value_enum, default_value = "auto")]
    pub accelerator: AcceleratorArg,
    /// Folder for test disks and data; the storage under it is what is measured [default: the run folder]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
}

impl PlatformStudyArgs {
    /// The same as the study takes it.
    pub fn options(&self) -> PlatformOptions {
        PlatformOptions {
            profile: match self.profile {
                ProfileArg::Minute => PlatformProfile::Minute,
                ProfileArg::Quick => PlatformProfile::Quick,
                ProfileArg::Full => PlatformProfile::Full,
            },
            domains: self.domains.clone(),
            repetitions: self.repetitions,
            weights: self.weights.clone(),
            environments: self.environment.clone(),
            reference: self.reference.clone(),
            accelerator: self.accelerator.wanted(),
            target_dir: self.target_dir.clone(),
            seed: self.seed,
        }
    }
}

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ProfileArg {
    /// Under two minutes
    Minute,
    /// Under half an hour
    Quick,
    /// Hours
    Full,
}

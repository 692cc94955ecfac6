//! `virtbench study platform`

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::Args;
use virtbench_record::PlatformPlan;

use super::folder::FolderArgs;
use super::qemu::AcceleratorArg;
use crate::exit::{Failure, Kind};
use crate::platform_profile::{PartOptions, ProfileArg, domains};
use crate::small_file;

/// `virtbench study platform`
#[derive(Debug, Args)]
#[command(after_help = "\
Each domain is measured by a study that is there by itself, natively and in VMs: storage by native-vs-vm, the network by network, \
memory and the processor by neighbours, a database by oltp. Their run folders lie in that of the platform, each can be opened and \
gone on with alone, and the report card links to their pages. What this host or this build does not have is left out, and said.

A domain's figure is the geometric mean of its ratios to this host, each turned so that more is better. The score is the weighted \
geometric mean over the domains; it says of how many it is, and is not comparable with one of others.

  minute  storage, network, memory, processor: under two minutes
  quick   the same with more points and more VMs, and a database: under half an hour; the first run builds the database's appliance
  full    the same for as long as the papers measured: hours, and how many is said before

Weights are a TOML file: a line such as `storage = 2` for each domain that does not count once; 0 leaves one out of the score.

Examples:
  virtbench study platform
  virtbench study platform --profile quick --accelerator kvm --out host-a
  virtbench study platform --domains storage,network --repetitions 5
  virtbench compare host-a host-b
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
    /// What is measured.
    ///
    /// # Errors
    /// A domain is named that the profile does not have, or the weights cannot be used.
    pub fn plan(&self) -> Result<PlatformPlan, Failure> {
        let usage = |why: String| Failure::message(Kind::Usage, why);
        let options = PartOptions {
            accelerator: self.accelerator.wanted().name(),
            target_dir: self.target_dir.as_deref(),
        };
        let mut all = domains(self.profile, &options);
        let names: Vec<String> = all.iter().map(|domain| domain.name.clone()).collect();
        let unknown = |name: &&String| !names.contains(name);
        if let Some(name) = self.domains.iter().find(unknown) {
            let profile = self.profile.name();
            return Err(usage(format!(
                "--domains: {name} is none of the profile {profile}: {}",
                names.join(", ")
            )));
        }
        all.retain(|domain| self.domains.is_empty() || self.domains.contains(&domain.name));
        let weights = self.weights()?;
        if let Some(name) = weights.keys().find(|name| !names.contains(name)) {
            return Err(usage(format!("--weights: {name} is no domain: {}", names.join(", "))));
        }
        if weights.values().any(|weight| !weight.is_finite() || *weight < 0.0) {
            return Err(usage("--weights: a weight is zero or more".into()));
        }
        Ok(PlatformPlan {
            profile: self.profile.name().into(),
            domains: all,
            repetitions: self.repetitions,
            weights,
            accelerator: self.accelerator.wanted().name().into(),
            seed: self.seed,
        })
    }

    fn weights(&self) -> Result<BTreeMap<String, f64>, Failure> {
        let Some(path) = &self.weights else { return Ok(BTreeMap::new()) };
        let refused =
            |why: String| Failure::message(Kind::Usage, format!("--weights {}: {why}", path.display()));
        let text = small_file::read(path).map_err(|error| refused(error.to_string()))?;
        toml::from_str(&text).map_err(|error| refused(error.to_string()))
    }
}

//! `virtbench appliance`, and where a study runs appliances: on this host, in VMs, and by which network.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use virtbench_units::parse_positive_duration_ns;

use super::study::QemuArgs;

/// What to do with appliances.
#[derive(Debug, Subcommand)]
pub enum ApplianceCommand {
    /// Make the root file system of an appliance from the distribution's own packages
    Build(ApplianceBuildArgs),
    /// List recipes, and what was built of them
    List(ApplianceListArgs),
    /// Start an appliance to try it: its services, where its ports are, and its logs
    Run(ApplianceRunArgs),
    /// Measure what the path to an appliance that runs costs: round trips, and bytes a second either way
    Path(AppliancePathArgs),
    /// Open a shell, or run a command, in a copy of an appliance's root that is gone afterwards
    Shell(ApplianceShellArgs),
    /// Remove what was built
    Remove(ApplianceRemoveArgs),
}

/// `virtbench appliance build`
#[derive(Debug, Args)]
#[command(after_help = "\
A recipe names packages, files, users, services and data; those that come with virtbench are listed by `virtbench appliance \
list`, your own are looked for in ~/.config/virtbench/appliances. The release and the servers are those of this host's apt. A \
root that was built stays as it is until --update finds newer packages; building it again, and running it, needs no network.

Examples:
  virtbench appliance build postgresql
  virtbench appliance build ./mail.toml --json | jq -r .image
  virtbench appliance build redis --update")]
pub struct ApplianceBuildArgs {
    /// Name of a recipe, or its file
    #[arg(value_name = "NAME|FILE.toml")]
    pub recipe: String,
    /// Look for newer packages, also where it is built already
    #[arg(long)]
    pub update: bool,
    /// How long it may take
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = limit)]
    pub limit: Duration,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `virtbench appliance list`
#[derive(Debug, Args)]
pub struct ApplianceListArgs {
    /// Print one JSON object, with the versions of all packages
    #[arg(long)]
    pub json: bool,
}

/// `virtbench appliance run`
#[derive(Debug, Args)]
#[command(after_help = "\
It is built where it is not, gets data of its own by the recipe's commands, and ends in good order by Ctrl-C, --time, or when a \
service ends by itself, which is exit code 6 with the end of its log. Its data are gone then.

Examples:
  virtbench appliance run postgresql
  virtbench appliance run ./mail.toml --native --time 60s --logs
  virtbench appliance run redis --accelerator uml
  virtbench appliance run redis --json | jq -r '.ports[\"6379\"]'")]
pub struct ApplianceRunArgs {
    /// Name of a recipe, or its file
    #[arg(value_name = "NAME|FILE.toml")]
    pub recipe: String,
    /// On this host in namespaces of its own, as root; in a VM otherwise, whose ports are on this host's loopback, or in a network
    /// namespace if it is one of User Mode Linux
    #[arg(long)]
    pub native: bool,
    /// Its processors
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub vcpus: u32,
    /// Its memory [default: what the recipe needs]
    #[arg(long, value_name = "SIZE", value_parser = virtbench_units::parse_bytes)]
    pub memory: Option<u64>,
    /// End it after this time
    #[arg(long, value_name = "TIME", value_parser = limit)]
    pub time: Option<Duration>,
    /// Show the end of each service's log before it ends
    #[arg(long)]
    pub logs: bool,
    /// What runs the VM
    #[command(flatten)]
    pub qemu: QemuArgs,
    /// Print one JSON object once it is ready
    #[arg(long)]
    pub json: bool,
}

/// `virtbench appliance path`
#[derive(Debug, Args)]
#[command(after_help = "\
It takes two seconds, or twice --time and one, and runs where clients of the appliance run: in its network namespace, if it has one.

Examples:
  nsenter --net=/proc/4711/fd/5 virtbench appliance path 10.77.0.10:47000
  nsenter --net=/proc/4711/fd/5 virtbench appliance path 10.77.0.10:47000 --time 5s")]
pub struct AppliancePathArgs {
    /// Where its agent answers, as `virtbench appliance run` says
    #[arg(value_name = "ADDRESS:PORT")]
    pub address: SocketAddr,
    /// How long bytes flow in each direction: values of half a second differ by a tenth from one to the next
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = limit)]
    pub time: Duration,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `virtbench appliance shell`
#[derive(Debug, Args)]
#[command(after_help = "\
The copy has processes and mounts of its own, and the host's network. It needs root. The exit code is the command's; 125 says \
that there is no copy.

Examples:
  virtbench appliance shell postgresql
  virtbench appliance shell postgresql -- runuser -u postgres -- /opt/postgresql/postgres --version")]
pub struct ApplianceShellArgs {
    /// Name of a recipe, or its file
    #[arg(value_name = "NAME|FILE.toml")]
    pub recipe: String,
    /// A command in place of a shell
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
}

/// `virtbench appliance remove`
#[derive(Debug, Args)]
pub struct ApplianceRemoveArgs {
    /// Every root of this name, and its data
    #[arg(value_name = "NAME", required_unless_present = "unused", conflicts_with = "unused")]
    pub name: Option<String>,
    /// Roots that no recipe leads to any more, their data, and packages that no root has
    #[arg(long)]
    pub unused: bool,
}

fn limit(text: &str) -> Result<Duration, String> {
    parse_positive_duration_ns(text).map(Duration::from_nanos)
}

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

/// Where on this host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Natively.
    Native,
    /// In a VM.
    Vm,
}

/// Reads `native` or `vm`, also as environments are written: `native:`. Nothing where it is neither.
pub fn place(text: &str) -> Option<Result<Place, String>> {
    match text.split_once(':').unwrap_or((text, "")) {
        ("native", "") => Some(Ok(Place::Native)),
        ("vm", "") => Some(Ok(Place::Vm)),
        (name @ ("native" | "vm"), rest) => Some(Err(format!(
            "{name}:{rest}: this study takes {name} without a folder; --target-dir names one where it has data"
        ))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_as_environments_are_or_by_name_alone() {
        assert_eq!(
            ["native", "native:", "vm", "vm:"].map(place),
            [Place::Native, Place::Native, Place::Vm, Place::Vm].map(|place| Some(Ok(place)))
        );
        assert!(
            place("native:/srv")
                .is_some_and(|wrong| wrong.is_err_and(|why| why.contains("without a folder")))
        );
        assert_eq!(
            ["", "natively", "existing", "ssh://host/srv", "vnc://desk1"].map(place),
            [const { None }; 5]
        );
    }
}

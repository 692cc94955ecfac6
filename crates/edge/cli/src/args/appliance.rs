//! `virtbench appliance`

use std::ffi::OsString;
use std::time::Duration;

use clap::{Args, Subcommand};
use virtbench_units::parse_positive_duration_ns;

/// What to do with appliances.
#[derive(Debug, Subcommand)]
pub enum ApplianceCommand {
    /// Make the root file system of an appliance from the distribution's own packages
    Build(ApplianceBuildArgs),
    /// List recipes, and what was built of them
    List(ApplianceListArgs),
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

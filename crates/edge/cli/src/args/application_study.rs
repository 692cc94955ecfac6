//! `virtbench study application`

use std::path::PathBuf;

use clap::Args;
use virtbench_units::parse_bytes;

use super::appliance_place::AppliancePlaceArgs;
use super::folder::FolderArgs;

/// `virtbench study application`
#[derive(Debug, Args)]
#[command(after_help = "\
An appliance (`virtbench appliance`) under any client, natively in namespaces and in a VM, with as many processors and as much \
memory. Each repetition has a boot and a copy of the data of its own; sides take turns. The client runs on this host within \
the appliance's network, and metrics are numbers that it prints. With neighbours, each side is also measured while others run \
the same, or another load, beside it. Natively it needs root.

  # redis.toml
  appliance = \"redis\"                # a recipe's name, or its file
  client = [\"redis-benchmark\", \"-h\", \"{host}\", \"-p\", \"{port}\", \"-t\", \"set,get\", \"-n\", \"20000\", \"--csv\"]
  prepare = []                       # commands that fill the data, once, natively: [[\"pgbench\", \"-i\", ...]]
  limit = \"120s\"                     # the client is ended then; takes = \"5s\" is for the estimate alone
  neighbours = 1                     # [neighbour] with client, appliance and prepare: another load
  disk = \"file\"                      # or \"fence,...\", as study adapters --backings takes it
  sides = [\"native\", \"vm\"]
  vcpus = [1]
  repetitions = 3                    # and memory = \"256MiB\"

  [[metric]]
  name = \"SET\"
  pattern = '\"SET\",\"([0-9.]+)\"'      # one group around the number; the last match counts
  unit = \"1/s\"
  better = \"higher\"                  # or lower

  [[tier]]                           # another appliance, which the first reaches as the host `db`
  name = \"db\"
  appliance = \"postgresql\"

Tiers boot before what the client loads, and each reaches those that follow it by name: natively in one network, in VMs by the tap \
devices of one bridge, else by cables between the VMs, which need no rights. What the path to each costs is measured beside every result.

{host} and {port} are the address of the appliance's first port, {port:N} that of port N, {processors} how many it has.

Examples:
  virtbench study application redis
  virtbench study application redis.toml
  virtbench study application redis.toml --neighbours 2 --repetitions 5 --out redis
  virtbench study application --resume --out redis")]
pub struct ApplicationStudyArgs {
    /// Study of an application, as above: a file, or redis, which virtbench brings along
    #[arg(value_name = "FILE|redis", required_unless_present = "resume")]
    pub file: Option<PathBuf>,
    /// Processors of each side, instead of the file's; several for scaling
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub vcpus: Vec<u32>,
    /// Memory of each side [default: the file's, else the least that the recipe needs]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory: Option<u64>,
    /// Repetitions, instead of the file's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: Option<u32>,
    /// How many run beside it, instead of the file's; 0 for alone only
    #[arg(long, value_name = "N")]
    pub neighbours: Option<u32>,
    /// Where data are kept, instead of the file's: file, or fence,...
    #[arg(long, value_name = "DISK")]
    pub disk: Option<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Where the appliance runs
    #[command(flatten)]
    pub place: AppliancePlaceArgs,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
}

//! `virtbench study tiles`

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use virtbench_record::TileNumbers;
use virtbench_study::{HostAddress, InfrastructureOptions, MemberPlace};
use virtbench_units::{parse_duration_ns, parse_positive_duration_ns};

use super::appliance::{NetworkArg, Place, place};
use super::numbers::auto_or_list;
use super::operations::{CloneArg, per_minute};
use super::study::{FolderArgs, QemuArgs};

/// The most tiles that a search tries.
const MOST_TILES: u32 = 64;

/// `virtbench study tiles`
#[derive(Debug, Args)]
#[command(after_help = "\
A tile is a fixed amount of different work: members, each an appliance (`virtbench appliance`) under a throttled load, with \
service levels. All members of all tiles begin at one moment. What each does is divided by a reference value; the score of a tile \
is the geometric mean over its members, the total is the sum over tiles, and one broken service level voids that number of tiles. \
Without --platform the score covers applications only.

With --platform management operations run beside the tiles, as `study operations` does them: at a fixed pace VMs of the run's own \
are cloned and started, moved (with --destination) and get snapshots, and as many are stopped and removed. Each kind of operation \
that keeps the pace scores 1, their geometric mean is the infrastructure score, and the total is 80 % of the tiles' and 20 % of \
that.

  # my-tile.toml
  name = \"mine\"
  network = \"tap\"                    # how its VMs are reached; else user

  [[member]]
  name = \"store\"
  appliance = \"redis\"                # a recipe's name, or its file
  vcpus = 1
  memory = \"192MiB\"                  # else the least that the recipe needs
  load = { kind = \"key-value\", users = 4, rate = 50 }
  levels = { percentile = 95, response = \"200ms\", least = 47.5, errors = 1 }
  reference = 50                     # operations a second; else what is done with the fewest tiles

Loads: oltp (users, rate, warehouses), web, key-value and mail (users, and rate or think), each with options = [...] for further \
words of `virtbench oltp run` or `virtbench users`; client (command, with {host}, {port} and {seconds}; patterns per_second, \
response_ms, failed); idle. prepare = [[...]] fills a member's data once.

Members that are there already (--environment existing) are left as they are: the software of the recipe, on whatever machine, with an \
address for each tile (at = [\"HOST\", \"HOST:PORT\"]). As many tiles can be tried as there are addresses.

On a hypervisor of yours (--environment libvirt+URI) members are VMs that libvirt starts and that end with the run. Roots and data are \
uploaded to its pool once. Each VM gets its address by DHCP on libvirt's network default, or on network=NAME or bridge=NAME; this \
host has to reach it there.

On a machine of yours (--environment ssh://root@HOST/FOLDER?bridge=NAME) members run natively, each in namespaces there, with a place on \
the bridge and an address by DHCP. Roots and data are sent into the folder once; with the run all is gone. It needs Linux, OpenSSH, \
iproute2 and loop devices there, and the system's ssh here.

Natively (in namespaces of this host) it needs root. The first run builds the appliances.

Examples:
  virtbench study tiles
  virtbench study tiles --tiles 1,2 --time 2m --out tiles
  virtbench study tiles --predict            # what more tiles will do, from each member by itself
  virtbench study tiles --tile my-tile.toml --environment native
  virtbench study tiles --tile my-tile.toml --environment existing   # at = [\"HOST\", ...] for each member
  virtbench study tiles --environment 'libvirt+qemu+ssh://root@hv/system?pool=fast&bridge=br0'
  virtbench study tiles --environment 'ssh://root@metal/srv/virtbench?bridge=br0'
  virtbench study tiles --platform libvirt+qemu:///system --pace 12/min
  virtbench study tiles --energy 'command:ipmitool dcmi power reading | grep Instantaneous'")]
pub struct TilesStudyArgs {
    /// The tile: tile-small, tile-paper (eight VMs), or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "tile-small")]
    pub tile: String,
    /// How many tiles at once: auto, which adds tiles until a service level breaks, or numbers with commas between them
    #[arg(long, value_name = "auto|LIST", default_value = "auto", value_parser = numbers)]
    pub tiles: TileNumbers,
    /// Where each member runs: native (on this host, in namespaces of its own), vm, existing (already there, at the addresses that
    /// the tile's file has), a VM of a hypervisor that runs already: libvirt+URI?pool=NAME, with network=NAME or bridge=NAME, or natively
    /// on a machine of yours: ssh://root@HOST/FOLDER?bridge=NAME
    #[arg(long, value_name = "PLACE", default_value = "vm", value_parser = TilePlaces, hide_possible_values = true)]
    pub environment: MemberPlace,
    /// How VMs that this run starts are reached: user needs no rights, tap is faster and needs root [default: what the tile says,
    /// else user]
    #[arg(long, value_enum)]
    pub network: Option<NetworkArg>,
    /// How long to measure
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = time)]
    pub time: u64,
    /// How long members are under load before that
    #[arg(long, alias = "ramp-up", value_name = "TIME", default_value = "20s", value_parser = parse_duration_ns)]
    pub ramp: u64,
    /// Repetitions of each number of tiles, each with boots of its own; a number at which a level broke is not repeated by auto
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Measure each member by itself first, and predict every number of tiles from that: the page has predicted beside measured
    #[arg(long)]
    pub predict: bool,
    /// Where power is read: rapl, file:PATH (lines of a moment in seconds since 1970, a comma, and watts), or command:WORDS, which
    /// prints watts [default: rapl where the host has it]
    #[arg(long, value_name = "SOURCE")]
    pub energy: Option<String>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// Management operations beside the tiles
    #[command(flatten)]
    pub infrastructure: InfrastructureArgs,
    /// What runs the VMs
    #[command(flatten)]
    pub qemu: QemuArgs,
    /// Folder for test disks and data; the storage under it is what is measured [default: the run folder]
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
}

/// Management operations beside the tiles.
#[derive(Debug, Args)]
pub struct InfrastructureArgs {
    /// Whose management operations run beside the tiles: libvirt+URI, vsphere+https://USER@HOST/sdk, proxmox:HOST or openstack:CLOUD, as for study operations
    #[arg(long, value_name = "ADDRESS")]
    pub platform: Option<String>,
    /// Where VMs are moved to and back: another hypervisor with the same storage
    #[arg(long, value_name = "ADDRESS", requires = "platform")]
    pub destination: Option<String>,
    /// Management operations a minute, all kinds together
    #[arg(long, value_name = "N/min", default_value = "12/min", value_parser = per_minute)]
    pub pace: f64,
    /// VMs that they are done on
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub platform_vms: u32,
    /// How a clone's disk is made
    #[arg(long, default_value = "full", value_parser = clone_with_snapshots())]
    pub clone: CloneArg,
    /// The longest that a management operation may take
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_positive_duration_ns)]
    pub operation_limit: u64,
}

fn member_place(text: &str) -> Result<MemberPlace, String> {
    if let Some(place) = place(text).transpose()? {
        return Ok(match place {
            Place::Native => MemberPlace::Native,
            Place::Vm => MemberPlace::Vm,
        });
    }
    match text {
        "existing" => Ok(MemberPlace::Existing),
        _ if text.starts_with("libvirt+") || text.starts_with("ssh://") => {
            HostAddress::parse(text).map(|address| MemberPlace::Host(Box::new(address)))
        }
        _ => Err("native, vm, existing, libvirt+URI?pool=NAME, or ssh://HOST/FOLDER?bridge=NAME".into()),
    }
}

impl InfrastructureArgs {
    /// As the study takes them; nothing where no platform is named.
    pub fn options(&self) -> Option<InfrastructureOptions> {
        Some(InfrastructureOptions {
            platform: self.platform.clone()?,
            destination: self.destination.clone(),
            per_minute: self.pace,
            vms: self.platform_vms,
            clone: self.clone.kind(),
            limit_ns: self.operation_limit,
        })
    }
}

/// Reads a place; shells complete those that are no addresses.
#[derive(Debug, Clone)]
struct TilePlaces;

impl TypedValueParser for TilePlaces {
    type Value = MemberPlace;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<MemberPlace, clap::Error> {
        member_place.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(["native", "vm", "existing"].into_iter().map(PossibleValue::new)))
    }
}

/// The ways to clone that leave a disk room for the snapshots of the infrastructure's mix.
fn clone_with_snapshots() -> impl TypedValueParser<Value = CloneArg> {
    let ways = [CloneArg::Full, CloneArg::Linked];
    PossibleValuesParser::new(ways.iter().filter_map(ValueEnum::to_possible_value))
        .try_map(|word| CloneArg::from_str(&word, false))
}

fn numbers(text: &str) -> Result<TileNumbers, String> {
    let given = auto_or_list(text, "tiles", 1000)?;
    Ok(given.map_or(TileNumbers::Auto { most: MOST_TILES }, TileNumbers::Given))
}

/// The host is looked at every second.
fn time(text: &str) -> Result<u64, String> {
    let time_ns = parse_duration_ns(text).map_err(|error| error.to_string())?;
    if time_ns >= 2_000_000_000 { Ok(time_ns) } else { Err("measure for 2s at least".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_shells_complete_is_a_place() {
        let words: Vec<PossibleValue> = TilePlaces.possible_values().unwrap().collect();
        assert_eq!(words.len(), 3);
        for word in words {
            member_place(word.get_name()).unwrap();
        }
        assert_eq!(member_place("native:"), Ok(MemberPlace::Native));
        assert!(member_place("vms").unwrap_err().starts_with("native, vm, existing, libvirt+URI"));
    }
}

//! `virtbench study application`, `oltp` and `desktops`: appliances natively and in VMs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use virtbench_desktops::{Link, NoAddress, VncAddress};
use virtbench_record::{DatabaseKind, DesktopNumbers, OltpUsers};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};

use super::appliance::{AppliancePlaceArgs, Place, place as here};
use super::numbers::auto_or_list;
use super::study::{FolderArgs, QemuArgs};

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

/// The most users that a search tries, unless a list says otherwise: the supplied recipes allow 300 connections.
const MOST_USERS: u32 = 256;

/// `virtbench study oltp`
#[derive(Debug, Args)]
#[command(after_help = "\
The same root and the same populated data natively (in namespaces, with as many processors and as much memory) and in a VM. \
Users are raised until the processors are saturated or throughput stops growing; then each side is measured at its saturation, \
and both with equal users, in turn and after a boot of its own each time. The first run builds the appliance \
(`virtbench appliance`) and populates it.

Natively it needs root. Transactions after TPC-C's specification; not comparable with published TPC results.

Examples:
  virtbench study oltp
  virtbench study oltp --database mariadb --warehouses 4 --users 1,4,16
  virtbench study oltp --vcpus 1,2 --repetitions 5 --out oltp
  virtbench study oltp --resume --out oltp")]
pub struct OltpStudyArgs {
    /// Which database
    #[arg(long, value_enum, default_value = "postgresql")]
    pub database: DatabaseArg,
    /// Warehouses of the population
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub warehouses: u32,
    /// Users: auto, or numbers with commas between them
    #[arg(long, value_name = "auto|LIST", default_value = "auto", value_parser = users)]
    pub users: OltpUsers,
    /// Processors of each side; several for scaling
    #[arg(long, value_name = "LIST", default_value = "1", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub vcpus: Vec<u32>,
    /// Memory of each side [default: the least that the recipe needs]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory: Option<u64>,
    /// Measurements at saturation and at equal users, each after a boot of its own
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Measuring time
    #[arg(long, value_name = "TIME", default_value = "20s", value_parser = parse_positive_duration_ns)]
    pub time: u64,
    /// Measuring time of each number of users in the search
    #[arg(long, value_name = "TIME", default_value = "8s", value_parser = parse_positive_duration_ns)]
    pub search_time: u64,
    /// Before each measurement
    #[arg(long, alias = "ramp-up", value_name = "TIME", default_value = "3s", value_parser = parse_duration_ns)]
    pub ramp: u64,
    /// Keying and think times of the specification, times this factor [default: none]
    #[arg(long, value_name = "FACTOR")]
    pub think_times: Option<f64>,
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

/// Which database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum DatabaseArg {
    /// PostgreSQL
    Postgresql,
    /// MariaDB
    Mariadb,
}

impl DatabaseArg {
    /// The database.
    pub fn kind(self) -> DatabaseKind {
        match self {
            Self::Postgresql => DatabaseKind::PostgreSql,
            Self::Mariadb => DatabaseKind::MariaDb,
        }
    }
}

fn users(text: &str) -> Result<OltpUsers, String> {
    let given = auto_or_list(text, "users", 100_000)?;
    Ok(given.map_or(OltpUsers::Auto { most: MOST_USERS }, OltpUsers::Given))
}

/// The most desktops that a search tries.
const MOST_DESKTOPS: u32 = 64;

/// `virtbench study desktops`
#[derive(Debug, Args)]
#[command(after_help = "\
Each user sits before a desktop of its own: types through VNC, watches the picture, and times each operation from its last key to \
the marker that the session draws when it is over. Users are content while 95 % of the interactive operations (group A) take 1 s \
at most and 95 % of the slow ones (group B) 6 s. The number of desktops is raised until they no longer are.

Natively (as sessions on this host) it needs root. The first run builds the desktop (`virtbench appliance`).

Examples:
  virtbench study desktops
  virtbench study desktops --day office --desktops 1,2,4,8 --time 5m --out desktops
  virtbench study desktops --day my-day.toml --recipe my-desktop.toml
  virtbench study desktops --environment vm --desktops 1,2 --accelerator tcg
  virtbench study desktops --environment vm --desktops 1,2 --accelerator uml
  virtbench study desktops --link delay=50ms,rate=10mbit
  virtbench study desktops --environment vnc://desk1,vnc://desk2:1 --password-file secret --day typing

Existing desktops (vnc://) have nobody inside: whatever has the keyboard there is typed into, an operation is over with the last \
change of the picture, and a day can only have keys and text. Their password is in VIRTBENCH_VNC_PASSWORD or in --password-file. \
Each user has a desktop of its own, so there can be as many users as addresses.")]
pub struct DesktopsStudyArgs {
    /// How many desktops at once: auto, or numbers with commas between them
    #[arg(long, value_name = "auto|LIST", default_value = "auto", value_parser = numbers)]
    pub desktops: DesktopNumbers,
    /// What users do: small, office (LibreOffice), typing, or a file
    #[arg(long, value_name = "NAME|FILE", default_value = "small")]
    pub day: String,
    /// The desktop: a recipe's name or file [default: the day's]
    #[arg(long, value_name = "NAME|FILE")]
    pub recipe: Option<String>,
    /// Where desktops run: natively as sessions on this host, each in a VM, or where they are already, with commas between them
    #[arg(long, value_name = "native|vm|vnc://HOST[:DISPLAY|::PORT]", default_value = "native", value_parser = place)]
    pub environment: DesktopPlaceArg,
    /// The file, of one line, with the password of existing desktops
    #[arg(long, value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A slower link between users and desktops, such as delay=50ms,rate=10mbit,loss=0.5%: what it adds to each way
    #[arg(long, value_name = "delay=TIME,rate=RATE,loss=SHARE")]
    pub link: Option<Link>,
    /// A part of every picture whose changes say nothing of an operation, as WIDTHxHEIGHT+X+Y; may be repeated. What changes all the time
    /// before users begin, such as a clock, is left out by itself
    #[arg(long, value_name = "PART")]
    pub mask: Vec<virtbench_record::PicturePart>,
    /// How long users work with each number of desktops
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = parse_positive_duration_ns)]
    pub time: u64,
    /// Repetitions of each number of desktops
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Limit of group A [default: the day's, else 1s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub limit_a: Option<u64>,
    /// Limit of group B [default: the day's, else 6s]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub limit_b: Option<u64>,
    /// Operations that may fail, in percent
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = percent)]
    pub errors: f64,
    /// Processors of each desktop
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub vcpus: u32,
    /// Memory of each desktop [default: the least that the recipe needs]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub memory: Option<u64>,
    /// Seed of every random choice
    #[arg(long, value_name = "N", default_value = "1")]
    pub seed: u64,
    /// What runs the VMs
    #[command(flatten)]
    pub qemu: QemuArgs,
    /// Where the run goes
    #[command(flatten)]
    pub folder: FolderArgs,
}

impl DesktopsStudyArgs {
    /// Whether desktops are in guests of User Mode Linux, which are named for it.
    pub fn are_in_uml(&self) -> bool {
        self.environment == DesktopPlaceArg::Vm && self.qemu.is_uml()
    }
}

/// Where desktops run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DesktopPlaceArg {
    /// A session each on this host, in namespaces of its own.
    Native,
    /// The same session in a VM each.
    Vm,
    /// They are there already.
    Existing(Vec<VncAddress>),
}

fn place(text: &str) -> Result<DesktopPlaceArg, String> {
    if let Some(place) = here(text).transpose()? {
        return Ok(match place {
            Place::Native => DesktopPlaceArg::Native,
            Place::Vm => DesktopPlaceArg::Vm,
        });
    }
    match text {
        others if others.starts_with("vnc:") => {
            let addresses = others.split(',').map(|one| one.trim().parse()).collect::<Result<_, _>>();
            addresses.map(DesktopPlaceArg::Existing).map_err(|error: NoAddress| error.to_string())
        }
        other if other.starts_with("ssh:") => Err(format!(
            "{other:?} is no place: desktops are sessions of Linux, natively here or in VMs; one that is there already, of whatever system, \
             is used by its screen, as in vnc://desk1"
        )),
        other => Err(format!(
            "{other:?} is no place: write native, vm, or addresses such as vnc://desk1,vnc://desk2:1"
        )),
    }
}

fn numbers(text: &str) -> Result<DesktopNumbers, String> {
    let given = auto_or_list(text, "desktops", 1000)?;
    Ok(given.map_or(DesktopNumbers::Auto { most: MOST_DESKTOPS }, DesktopNumbers::Given))
}

fn percent(text: &str) -> Result<f64, String> {
    let percent = text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
    percent.ok_or_else(|| format!("{text:?} is no share in percent: from 0 to 100"))
}

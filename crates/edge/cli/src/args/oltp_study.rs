//! `virtbench study oltp`

use clap::{Args, ValueEnum};
use virtbench_record::{DatabaseKind, OltpUsers};
use virtbench_units::{parse_bytes, parse_duration_ns, parse_positive_duration_ns};

use super::appliance_place::AppliancePlaceArgs;
use super::folder::FolderArgs;
use super::number_list::auto_or_list;

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

//! `virtbench surface`

use std::path::PathBuf;

use clap::Args;
use virtbench_units::{parse_duration_ns, parse_positive_duration_ns};

use super::CommonArgs;
use super::repeat::share;

/// `virtbench surface`
#[derive(Debug, Args)]
#[command(after_help = "\
A Gaussian process predicts the points that are not measured and says how far off it may be; the next \
point is the one that tells most about all others. It ends when half of the predictions should be \
within --error, or when --budget is spent.

A grid file is TOML, as for `virtbench study native-vs-vm`; each point is measured once.

Examples:
  virtbench surface --target /srv/test.img --size 1GiB --time 3s
  virtbench surface --target /srv/test.img --grid mine.toml --budget 50% --error 3% --csv surface.csv")]
pub struct SurfaceArgs {
    /// File, block device, or `null` (the engine alone)
    #[arg(long, value_name = "FILE|DEVICE")]
    pub target: PathBuf,
    /// How much, how many, how
    #[command(flatten)]
    pub common: CommonArgs,
    /// Points of the surface: paper (100 points: 1k to 16k x reads x randoms), quick (18), or a TOML file
    #[arg(long, value_name = "paper|quick|FILE", default_value = "paper")]
    pub grid: String,
    /// The most measurements, as a share of the grid's points
    #[arg(long, value_name = "PERCENT", default_value = "30%", value_parser = share)]
    pub budget: f64,
    /// Stop when the median error of the other points should be below this
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    pub error: f64,
    /// Ramp-up before each point [default: 500ms, or the grid file's]
    #[arg(long, value_name = "TIME", value_parser = parse_duration_ns)]
    pub ramp: Option<u64>,
    /// Measuring time of each point [default: 3s, or the grid file's]
    #[arg(long, value_name = "TIME", value_parser = parse_positive_duration_ns)]
    pub time: Option<u64>,
    /// Write the surface as CSV here
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

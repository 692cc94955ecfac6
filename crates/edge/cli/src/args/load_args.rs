//! What a load can be told beyond the mix: rate, placement, contents, verification, the kernel's ways, files that it comes from,
//! and a recorded trace instead.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use virtbench_formats::Format;
use virtbench_units::parse_positive_duration_ns;
use virtbench_workload::{
    AccessLine, Arrivals, ClockReading, Content, LoadSpec, Pace, Placement, Rate, UringOptions,
    parse_placement,
};

use super::numbers::percent;

/// When operations of an open loop arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ArrivalsArg {
    /// At equal distances
    Constant,
    /// At exponentially distributed distances, as independent users do
    Poisson,
}

impl ArrivalsArg {
    /// The open loop of so many operations a second, if there is to be one.
    pub fn rate(self, per_second: Option<f64>) -> Option<Rate> {
        let arrivals = match self {
            Self::Constant => Arrivals::Constant,
            Self::Poisson => Arrivals::Poisson,
        };
        per_second.map(|per_second| Rate { per_second, arrivals })
    }
}

/// How often the clock is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ClockArg {
    /// Once for what completes together
    Batch,
    /// For each operation
    Each,
}

/// Options of `virtbench load` that most loads leave alone.
#[derive(Debug, Args)]
pub struct LoadOptions {
    /// Where random seeks go: uniform, zipf:THETA, pareto:H (as fio), hot:DATA/ACCESSES (in percent)
    /// or stride:SIZE
    #[arg(long, value_name = "WHERE", value_parser = parse_placement, help_heading = "Pattern")]
    pub distribution: Option<Placement>,
    /// Trims (discards), in percent of the operations that are not reads
    #[arg(long, value_name = "PERCENT", value_parser = percent, help_heading = "Pattern")]
    pub trim: Option<f64>,
    /// Flush (fdatasync) after so many writes of a worker
    #[arg(long, value_name = "N", help_heading = "Pattern")]
    pub flush_every: Option<u32>,
    /// How much of each written block a compressor can save
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = whole_percent, help_heading = "Contents")]
    pub compressible: u8,
    /// How many of the written blocks repeat another one
    #[arg(long, value_name = "PERCENT", default_value = "0", value_parser = whole_percent, help_heading = "Contents")]
    pub duplicate: u8,
    /// Mark each block with seed, offset, version and checksum; check what is read, and the whole
    /// region at the end
    #[arg(long, help_heading = "Contents")]
    pub verify: bool,
    /// Where --verify keeps its ledger for --verify-only, which reads it [default: TARGET.virtbench-ledger
    /// beside a file; none for devices and servers]
    #[arg(long, value_name = "FILE", help_heading = "Contents")]
    pub ledger: Option<PathBuf>,
    /// End the load when an operation takes longer
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_positive_duration_ns, help_heading = "Kernel")]
    pub timeout: u64,
    /// Pin workers to these processors, in turn
    #[arg(long, value_name = "N,N", value_delimiter = ',', help_heading = "Kernel")]
    pub pin: Vec<u32>,
    /// Read the clock once for all operations that complete together, or for each one when it starts and
    /// when it completes: exact for each, and slower
    #[arg(long, value_enum, default_value = "batch", help_heading = "Kernel")]
    pub clock: ClockArg,
    /// io_uring: let a kernel thread poll for submissions
    #[arg(long, help_heading = "Kernel")]
    pub sqpoll: bool,
    /// io_uring: poll the device for completions
    #[arg(long, help_heading = "Kernel")]
    pub iopoll: bool,
}

/// What only a load that is applied as it is described can be told.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// Open loop: start so many operations per second, of all workers together, whether earlier ones
    /// have completed or not; latency then counts from the intended start
    #[arg(long, value_name = "N/s", value_parser = per_second, help_heading = "Open loop")]
    pub rate: Option<f64>,
    /// When they arrive
    #[arg(long, value_enum, default_value = "constant", requires = "rate", help_heading = "Open loop")]
    pub arrivals: ArrivalsArg,
    /// Apply no load: check what an earlier run with --verify and the same --seed, --bs, --align and
    /// --size has written, against the ledger it left: what was flushed must be there, even if load or
    /// target were killed; what was sent later may be
    #[arg(long, requires = "seed", conflicts_with_all = ["verify", "rate", "spec", "fio", "export", "steady", "repeat", "repeat_until"], help_heading = "Contents")]
    pub verify_only: bool,
}

impl ApplyArgs {
    /// The open loop that was asked for.
    pub fn rate(&self) -> Option<Rate> {
        self.arrivals.rate(self.rate)
    }
}

impl LoadOptions {
    /// Applies what concerns the mix to each of its lines.
    pub fn refine(&self, line: AccessLine) -> AccessLine {
        AccessLine {
            placement: self.distribution.unwrap_or(line.placement),
            trim_percent: self.trim.unwrap_or(line.trim_percent),
            ..line
        }
    }

    /// Applies everything else to the load.
    pub fn complete(&self, spec: LoadSpec) -> LoadSpec {
        LoadSpec {
            flush_every: self.flush_every,
            content: Content { compressible_percent: self.compressible, duplicate_percent: self.duplicate },
            verify: self.verify,
            uring: UringOptions { submission_polling: self.sqpoll, completion_polling: self.iopoll },
            processors: self.pin.clone(),
            timeout_ns: self.timeout,
            clock: match self.clock {
                ClockArg::Batch => ClockReading::Batch,
                ClockArg::Each => ClockReading::Each,
            },
            ..spec
        }
    }
}

/// Reads `5000/s`, `5k/s` (decimal thousands) or a plain number of operations per second.
pub fn per_second(text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix("/s").unwrap_or(text.trim());
    let (number, factor) = match number.strip_suffix(['k', 'K']) {
        Some(number) => (number, 1e3),
        None => match number.strip_suffix('M') {
            Some(number) => (number, 1e6),
            None => (number, 1.0),
        },
    };
    number
        .parse::<f64>()
        .ok()
        .map(|value| value * factor)
        .filter(|value| value.is_finite() && *value > 0.0)
        .ok_or_else(|| format!("{text:?} is not a rate: write for example 5000/s or 5k/s"))
}

fn whole_percent(text: &str) -> Result<u8, String> {
    text.trim_end_matches('%')
        .parse()
        .ok()
        .filter(|value| *value <= 100)
        .ok_or_else(|| "a whole percentage lies between 0 and 100".to_owned())
}

/// A load from a file, and results into files.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("load_of_others").args(["spec", "fio"]))]
pub struct SpecArgs {
    /// Run the load that a file describes: Iometer's .icf, a fio job file, diskspd command lines, or
    /// JSON. Its times, workers and outstanding I/Os hold unless an option here says otherwise
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bs", "read", "random", "think", "burst", "align", "mix"])]
    pub spec: Option<PathBuf>,
    /// Run the jobs of a fio command line, such as '--name=a --rw=randread --bs=4k --size=1g'
    #[arg(long, value_name = "OPTIONS", allow_hyphen_values = true, conflicts_with_all = ["bs", "read", "random", "think", "burst", "align", "mix"])]
    pub fio: Option<String>,
    /// Format of --spec
    #[arg(long, value_enum, default_value = "auto", requires = "spec")]
    pub format: FormatArg,
    /// Run --spec or --fio without what cannot be honoured, and say what that was
    #[arg(long, requires = "load_of_others")]
    pub lenient: bool,
    /// Print what --spec or --fio asks for, phase by phase, and run nothing
    #[arg(long, requires = "load_of_others")]
    pub dry_run: bool,
    /// Write the results in another tool's format as well; may be repeated: fio-json (fio-plot and
    /// other readers of fio), iometer-csv, hlog (HdrHistogram), openmetrics (Prometheus)
    #[arg(long, value_name = "FORMAT=FILE")]
    pub export: Vec<ExportArg>,
}

impl SpecArgs {
    /// Whether the load comes from another tool's words.
    pub fn is_given(&self) -> bool {
        self.spec.is_some() || self.fio.is_some()
    }
}

/// Format of a load's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// What its content shows
    Auto,
    /// Iometer configuration
    Icf,
    /// fio job file
    Fio,
    /// fio command lines
    FioCommand,
    /// diskspd command lines, or an XML profile
    Diskspd,
    /// Vdbench parameter file
    Vdbench,
    /// virtbench's own (docs/formats.md)
    Json,
}

impl From<FormatArg> for Option<Format> {
    fn from(format: FormatArg) -> Self {
        match format {
            FormatArg::Auto => None,
            FormatArg::Icf => Some(Format::Icf),
            FormatArg::Fio => Some(Format::Fio),
            FormatArg::FioCommand => Some(Format::FioCommand),
            FormatArg::Diskspd => Some(Format::Diskspd),
            FormatArg::Vdbench => Some(Format::Vdbench),
            FormatArg::Json => Some(Format::Json),
        }
    }
}

/// Format of exported results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// diskspd's XML of results
    Diskspd,
    /// fio's JSON output
    FioJson,
    /// Iometer's results
    IometerCsv,
    /// HdrHistogram log
    Hlog,
    /// OpenMetrics text
    Openmetrics,
}

/// `FORMAT=FILE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportArg {
    /// The format.
    pub format: ExportFormat,
    /// Where to.
    pub path: PathBuf,
}

impl FromStr for ExportArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let usage = || {
            "write diskspd=FILE, fio-json=FILE, iometer-csv=FILE, hlog=FILE or openmetrics=FILE".to_owned()
        };
        let (format, path) = text.split_once('=').filter(|(_, path)| !path.is_empty()).ok_or_else(usage)?;
        let format = ExportFormat::from_str(format, false).map_err(|_| usage())?;
        Ok(Self { format, path: path.into() })
    }
}

/// Replaying a trace.
#[derive(Debug, Args)]
pub struct TraceArgs {
    /// Replay a trace: a CSV of time, offset, size and operation, fio's iolog, what blkparse prints, or a trace of MSR Cambridge (see
    /// docs/formats.md).
    /// Without --time it is replayed to its end, without --ramp all of it is measured; of several workers
    /// each replays every n-th operation
    #[arg(long, value_name = "FILE", help_heading = "Trace", conflicts_with_all = [
        "bs", "read", "random", "think", "burst", "align", "mix", "rate", "distribution", "trim", "flush_every",
        "spec", "fio", "steady", "verify_only",
    ])]
    pub trace: Option<PathBuf>,
    /// How fast: recorded, a speed such as 2x or 0.5x (open loop: latency counts from the intended
    /// start), or max (closed loop: --outstanding I/Os are kept up)
    #[arg(long, value_name = "PACE", default_value = "recorded", requires = "trace", help_heading = "Trace")]
    pub pace: Pace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read() {
        assert_eq!(per_second("5000/s"), Ok(5000.0));
        assert_eq!(per_second("5k/s"), Ok(5000.0));
        assert_eq!(per_second("0.5"), Ok(0.5));
        for text in ["", "0", "-3/s", "5000/m", "nan", "inf/s"] {
            assert!(per_second(text).is_err(), "{text}");
        }
    }

    #[test]
    fn whole_percentages_have_bounds() {
        assert_eq!(whole_percent("50%"), Ok(50));
        assert!(whole_percent("101").is_err() && whole_percent("-1").is_err());
    }

    #[test]
    fn exports_name_format_and_file() {
        let export: ExportArg = "fio-json=a=b.json".parse().unwrap();
        assert_eq!((export.format, export.path), (ExportFormat::FioJson, PathBuf::from("a=b.json")));
        for text in ["", "fio-json", "fio-json=", "xml=a"] {
            assert!(text.parse::<ExportArg>().unwrap_err().contains("hlog=FILE"), "{text}");
        }
    }
}

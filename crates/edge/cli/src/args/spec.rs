//! Loads from files, results into files.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use virtbench_formats::Format;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_name_format_and_file() {
        let export: ExportArg = "fio-json=a=b.json".parse().unwrap();
        assert_eq!((export.format, export.path), (ExportFormat::FioJson, PathBuf::from("a=b.json")));
        for text in ["", "fio-json", "fio-json=", "xml=a"] {
            assert!(text.parse::<ExportArg>().unwrap_err().contains("hlog=FILE"), "{text}");
        }
    }
}

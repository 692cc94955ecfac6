//! `virtbench report`

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// `virtbench report`
#[derive(Debug, Args)]
#[command(after_help = "\
Without --format the page and the CSV are written into the run folder again.

Examples:
  virtbench report out/run
  virtbench report out/run --format markdown >> \"$GITHUB_STEP_SUMMARY\"
  virtbench report out/run --format text | less
  virtbench report out/run --format svg --out slides")]
pub struct ReportArgs {
    /// Run folder
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Write one form of it: to stdout, or where --out says
    #[arg(long, value_enum, conflicts_with_all = ["html", "csv"])]
    pub format: Option<ReportFormat>,
    /// Write the form here: a file, or for svg a folder [default: stdout; for svg DIR/figures]
    #[arg(short, long, value_name = "PATH", requires = "format")]
    pub out: Option<PathBuf>,
    /// Write the page here [default: DIR/report.html]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write the points as CSV here [default: DIR/results.csv]
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// As what a run is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    /// The page: one file that needs neither network nor scripts
    Html,
    /// For an issue or a pull request: verdict, table, cautions, command to repeat
    Markdown,
    /// For a terminal: 80 columns, drawings in characters
    Text,
    /// What it comes to, in one line
    Line,
    /// Every measurement
    Csv,
    /// One file a drawing, for slides and papers
    Svg,
}

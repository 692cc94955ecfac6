//! `virtbench compare`, `analyse` and `report`: what looks at runs that are there.

use std::path::PathBuf;

use clap::{Args, ValueEnum, value_parser};

use super::numbers::share;

/// When the comparison of two runs fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// Something is worse by more than the margin (exit code 9), or nothing could be judged (exit code 10)
    Regression,
    /// Something could not be judged (exit code 10)
    Undecided,
}

/// `virtbench compare`
#[derive(Debug, Args)]
#[command(after_help = "\
Points that both runs measured in an environment of the same name are compared: throughput, mean latency and the 99th \
percentile, after as a multiple of before. What differs between version, host and guest is named first.

Each verdict (better, worse, equivalent within the margin, undecided) is by itself wrong with a probability of at most \
5 %. --fail-on regression allows for how much is looked at: all that it fails on together is false in at most 5 % of \
comparisons, as far as the spread is known. Repetitions of one run do not show how much runs differ. Comparable runs in the catalogue do, and \
so do sides measured in turn; of two single runs without either it is unknown, and that is said. A side that completed nothing is worse.

Of two runs of study platform the score and each domain are compared, and the figures that moved are named. Where something else \
executed the guests, nothing is judged.

Some comparisons are not possible: runs without a common point (exit code 10 always), points measured once on a side, one run and its copy, \
hosts that were not as busy (others used 10 % more of the processors, the hypervisor below took 10 % more away, or a quarter more threads wanted \
each). --fail-on regression ends with exit code 10 where nothing could be judged or a host was busier, --fail-on regression,undecided \
where anything could not.

--alternate measures both sides in one go: a turn of BEFORE, one of AFTER, one of AFTER, one of BEFORE, and so on. The sides
are two studies as files, as `virtbench run` has them, that differ in a kernel or a configuration, or one study and two \
commands. Environments are compared that have the same name on both sides. Each turn is a run folder of its own below \
--out; it makes its files and starts its guests anew. After a kill --alternate --resume goes on, and the two folders can \
be compared again at any time.

Examples:
  virtbench compare virtbench-native-vs-vm-monday virtbench-native-vs-vm-friday
  virtbench compare main/run branch/run --fail-on regression,undecided --markdown > comment.md
  virtbench compare --alternate old-kernel.toml new-kernel.toml --fail-on regression
  virtbench compare --alternate nightly.toml --before-command ./main/virtbench --after-command ./branch/virtbench
  virtbench compare virtbench-alternate-2026-11-23/before virtbench-alternate-2026-11-23/after --margin 2%
  virtbench compare before after --margin 10% --html change.html --json | jq .environments[0].overall")]
pub struct CompareRunsArgs {
    /// Run folder from before the change, or a folder with a run for each turn; a study with --alternate
    #[arg(value_name = "BEFORE", required_unless_present = "resume")]
    pub before: Option<PathBuf>,
    /// The same from after it
    #[arg(value_name = "AFTER", required_unless_present = "alternate")]
    pub after: Option<PathBuf>,
    /// Both measured in turn
    #[command(flatten)]
    pub alternate: AlternateArgs,
    /// How much more or less counts as the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    pub margin: f64,
    /// End with an exit code of its own
    #[arg(long, value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// The catalogue of past runs, by which it is known how much runs differ [default: $XDG_DATA_HOME/virtbench/history.sqlite,
    /// if there is one]; or a database as virtbench history has it
    #[cfg(feature = "full")]
    #[arg(long, value_name = "FILE|ADDRESS")]
    pub catalogue: Option<PathBuf>,
    /// Write a page with figures here [default with --alternate: report.html in --out]
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print a table in Markdown, for a pull request
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Both sides measured in turn, before they are compared.
#[derive(Debug, Args)]
pub struct AlternateArgs {
    /// Measure both first, in turn: BEFORE and AFTER are studies as files (or runs whose study is run again), AFTER being
    /// BEFORE where only the commands differ
    #[arg(long)]
    pub alternate: bool,
    /// Turns of each side; a turn measures every point once
    #[arg(long, value_name = "N", default_value = "5", requires = "alternate", value_parser = value_parser!(u32).range(2..=1000))]
    pub repetitions: u32,
    /// The virtbench that measures BEFORE [default: this one]
    #[arg(long, value_name = "FILE", requires = "alternate")]
    pub before_command: Option<PathBuf>,
    /// The virtbench that measures AFTER [default: this one]
    #[arg(long, value_name = "FILE", requires = "alternate")]
    pub after_command: Option<PathBuf>,
    /// Folder for the runs of both sides [default: virtbench-alternate-DATE]
    #[arg(long, value_name = "DIR", requires = "alternate")]
    pub out: Option<PathBuf>,
    /// Go on with the missing turns of --out
    #[arg(long, requires = "alternate", requires = "out", conflicts_with_all = [
        "before", "after", "repetitions", "before_command", "after_command"
    ])]
    pub resume: bool,
}

/// `virtbench analyse`
#[derive(Debug, Args)]
#[command(after_help = "\
A table is CSV with the columns configuration, block, read_percent, random_percent, iops, and where they \
are known repetition, cpu_percent and response_ms; lines with # are comments. results.csv of a run is one. A table of an application has columns such as users, \
transactions_per_second, cycles_per_transaction, cycles_per_instruction and instructions_per_transaction \
instead: each configuration is compared with the first, and why a transaction costs more is worked out. A table of \
tiles has the columns tile, member, value and reference, and where they are known tiles and held: it is scored as VMmark \
is, and the most tiles that fit are named.

Two configurations differ, or are equivalent, where an interval of 90 % lies wholly beyond or within the \
margin: each verdict is then wrong with a probability of at most 5 %. Everything else is undecided. Points \
without repetitions are judged by their values alone, which is said.

Examples:
  virtbench analyse docs/data/paper2-adapters.csv
  virtbench analyse virtbench-adapters-2026-11-21 --margin 10% --html analysis.html
  virtbench analyse docs/data/paper3-cycles.csv
  virtbench analyse tiles.csv --html tiles.html
  virtbench analyse mine.csv --json | jq .pairs[0].throughput")]
pub struct AnalyseArgs {
    /// Table of results (CSV), or run folder
    #[arg(value_name = "FILE|DIR")]
    pub source: PathBuf,
    /// How much more or less counts as the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    pub margin: f64,
    /// Write a page with figures here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write every verdict as CSV here
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// `virtbench papers`
#[derive(Debug, Args)]
#[cfg(feature = "full")]
#[command(after_help = "\
Each conclusion of the five papers is a rule over runs of one study. It holds, does not hold, or is open, for each platform that was \
measured; the document says by which rule, beside the paper's own figures. Of two runs that say something of one conclusion on one \
platform, the one named later counts. If no run says anything, the command ends with exit code 10.

Examples:
  virtbench papers out/papers > papers.md
  virtbench papers virtbench-native-vs-vm-2026-11-30 virtbench-oltp-2026-11-30
  virtbench papers out/papers --json | jq '.claims[] | select(.findings[].verdict == \"fails\") | .words'")]
pub struct PapersArgs {
    /// Run folders, or folders in which there are some
    #[arg(value_name = "DIR", required = true)]
    pub runs: Vec<PathBuf>,
    /// Write the document here [default: stdout]
    #[arg(short, long, value_name = "FILE", conflicts_with = "json")]
    pub out: Option<PathBuf>,
    /// Print one JSON object instead of a document
    #[arg(long)]
    pub json: bool,
}

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

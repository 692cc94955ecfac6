//! `virtbench history`

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};

use super::compare::FailOn;
use super::numbers::share;

/// What to do with the catalogue.
#[derive(Debug, Subcommand)]
pub enum HistoryCommand {
    /// List runs
    List(HistoryListArgs),
    /// Say where figures changed from run to run, and write a page that shows each of them over time
    Page(HistoryPageArgs),
    /// Give a run tags, or take them from it; without any, print those it has
    Tag(HistoryTagArgs),
    /// Read every run of this machine again
    Rebuild(HistoryRebuildArgs),
}

/// Where the catalogue is.
#[derive(Debug, Args)]
pub struct CatalogueArgs {
    /// The catalogue: a file, or a database that a team shares, such as postgresql://user@host/database
    /// [default: $XDG_DATA_HOME/virtbench/history.sqlite]
    #[arg(long = "catalogue", value_name = "FILE|ADDRESS")]
    pub place: Option<PathBuf>,
}

/// Which runs.
#[derive(Debug, Args)]
pub struct SelectionArgs {
    /// Look through these folders and take the runs in them [default: all runs of folders that were ever named]
    #[arg(value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// Only runs of this study, such as native-vs-vm
    #[arg(long, value_name = "NAME")]
    pub study: Option<String>,
    /// Only runs on hosts whose description contains this, such as EPYC
    #[arg(long, value_name = "TEXT")]
    pub host: Option<String>,
    /// Only runs with this tag; may be repeated
    #[arg(long, value_name = "TAG")]
    pub tag: Vec<String>,
    /// Only runs that began on this day or later, or within this time: 2026-11-01, 30d
    #[arg(long, value_name = "DATE|TIME", value_parser = since, default_value = "1970-01-01", hide_default_value = true)]
    pub since: u64,
    /// The catalogue.
    #[command(flatten)]
    pub catalogue: CatalogueArgs,
}

/// `virtbench history list`
#[derive(Debug, Args)]
#[command(after_help = "\
Run folders are looked for in the folders named and up to six levels below. The catalogue keeps what was read of them; what \
changed is read again, and what is gone is forgotten. It can be removed at any time: the run folders are the truth.

A catalogue in PostgreSQL has the same tables, in the schema virtbench_history (?schema=NAME names another). Every machine keeps the runs of its \
own folders there, and lists those of all. The password is taken from PGPASSWORD, and ?sslmode=verify-full encrypts. A role that may only \
read lists what is there.

Examples:
  virtbench history list ~/runs
  virtbench history list --study native-vs-vm --since 30d
  virtbench history list --catalogue 'postgresql://virtbench@db/team?sslmode=verify-full' ~/runs
  virtbench history list --tag release --json | jq .runs[].folder")]
pub struct HistoryListArgs {
    /// Which runs.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `virtbench history page`
#[derive(Debug, Args)]
#[command(after_help = "\
Runs of one plan on one host are followed from run to run, apart from the seed, the number of repetitions and what files are called. \
Copies of a run count once. Runs that differ otherwise are in groups that are not compared with each other; the page says in what they differ, \
and --join compares them all the same.

The newest runs, one, two, three, ... of them, are held against those before them since the last change, from four comparable \
runs on, by Student's test of logarithms: in runs that never changed, one of the headlines is called worse at 1 % of looks. Older changes of level \
or spread are found by E-Divisive (Matteson and James 2014) with permutations: in runs that never changed, one of the headlines is said to \
have changed with a probability of 5 %, and one of all other measures with as much. A run that completed nothing is worse than any that did.

--fail-on regression ends with exit code 9 if a headline is worse, and with 10 if the newest run cannot be judged or its host was busier; \
--fail-on regression,undecided also if a part of it cannot be judged.

Examples:
  virtbench history page ~/runs --html history.html
  virtbench history page --study native-vs-vm --fail-on regression
  virtbench history page ~/runs --join device --join processor
  virtbench history page --json | jq '.groups[].series[] | select(.changes != [])'")]
pub struct HistoryPageArgs {
    /// Which runs.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// How much more or less counts as the same
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = share)]
    pub margin: f64,
    /// Compare runs though they differ in this; may be repeated. The page names what runs differ in, such as processor or device
    #[arg(long, value_name = "PART")]
    pub join: Vec<String>,
    /// End with an exit code of its own if a headline is worse in the newest runs, or since its last change
    #[arg(long, value_enum, value_delimiter = ',')]
    pub fail_on: Vec<FailOn>,
    /// Write the page here
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// `virtbench history tag`
#[derive(Debug, Args)]
#[command(after_help = "\
Tags are kept in the run folder (tags.json), so that they outlive the catalogue.

Examples:
  virtbench history tag virtbench-native-vs-vm-2026-11-22 release/1.0 quiet
  virtbench history tag virtbench-native-vs-vm-2026-11-22 --remove quiet")]
pub struct HistoryTagArgs {
    /// Run folder
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// Tags that it gets
    #[arg(value_name = "TAG")]
    pub tags: Vec<String>,
    /// Take this tag from it; may be repeated
    #[arg(long, value_name = "TAG")]
    pub remove: Vec<String>,
}

/// `virtbench history rebuild`
#[derive(Debug, Args)]
#[command(after_help = "\
What the catalogue holds of this machine's runs is read again from their folders, whether or not they changed, and runs are \
forgotten whose folders are gone. Runs of other machines in a shared catalogue stay as they are. Where it is interrupted, what was read by then is kept.

Examples:
  virtbench history rebuild
  virtbench history rebuild ~/runs
  virtbench history rebuild --catalogue 'postgresql://virtbench@db/team?sslmode=verify-full'")]
pub struct HistoryRebuildArgs {
    /// Folders with runs [default: all that were ever named]
    #[arg(value_name = "DIR")]
    pub folders: Vec<PathBuf>,
    /// The catalogue.
    #[command(flatten)]
    pub catalogue: CatalogueArgs,
}

/// A day, or a time before now, as seconds since 1970.
fn since(text: &str) -> Result<u64, String> {
    let unix_s = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let day = humantime::parse_rfc3339_weak(&format!("{text}T00:00:00Z"));
    let moment = day.or_else(|_| humantime::parse_rfc3339_weak(text)).map(unix_s);
    let before = || {
        humantime::parse_duration(text)
            .map(|time: Duration| unix_s(SystemTime::now()).saturating_sub(time.as_secs()))
    };
    moment
        .or_else(|_| before())
        .map_err(|_| "write a day such as 2026-11-01, or a time such as 30d".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn since_is_a_day_or_a_time() {
        assert_eq!(since("1970-01-02"), Ok(86_400));
        assert_eq!(since("1970-01-02T00:00:01Z"), Ok(86_401));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(since("2h").unwrap().abs_diff(now - 7_200) <= 1);
        assert!(since("1000000y").is_err() || since("1000000y") == Ok(0));
        assert!(since("yesterday").is_err());
    }
}

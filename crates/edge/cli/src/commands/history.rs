//! `virtbench history`

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;
use virtbench_history::{Catalogue, CatalogueError, Filter, Place, Scanned, Watch, read_tags, write_tags};
use virtbench_model::history::{History, HistoryRun, Measure, history};
use virtbench_report::{HistoryPage, Takeaway, moment, with_unit};
use virtbench_runs::read_provenance;

use crate::args::history::{
    HistoryCommand, HistoryListArgs, HistoryPageArgs, HistoryRebuildArgs, HistoryTagArgs, SelectionArgs,
};
use crate::commands::regression;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{line, print_json, say, tell};
use crate::text_table::{TextTable, left, right};
use crate::{interrupt, progress};

/// The seed of the permutations: the same runs have the same changes.
const SEED: u64 = 1;
/// How many headlines of a run are listed.
const LISTED: usize = 2;

/// What `list --json` prints of a run.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    run: &'a HistoryRun,
    measures: &'a [Measure],
}

/// Lists, tags and follows runs, and reads them again.
pub fn execute(command: &HistoryCommand) -> Outcome {
    match command {
        HistoryCommand::List(args) => list(args),
        HistoryCommand::Page(args) => page(args),
        HistoryCommand::Tag(args) => tag(args),
        HistoryCommand::Rebuild(args) => rebuild(args),
    }
}

fn list(args: &HistoryListArgs) -> Outcome {
    let runs = select(&args.selection)?;
    if args.json {
        let runs: Vec<Listed> = runs.iter().map(|run| Listed { run, measures: &run.measures }).collect();
        return Ok(print_json(&serde_json::json!({ "runs": runs }))?);
    }
    if runs.is_empty() {
        line(format_args!("no runs: name a folder that has some, as in virtbench history list DIR"));
        return Ok(());
    }
    let mut table = TextTable::new(0, &[left(0), left(0), left(0), left(0), left(0)]);
    table.row(["began, UTC", "study", "result", "tags", "folder"]);
    for run in &runs {
        table.row([began(run), run.study.clone(), headlines(run), run.tags.join(", "), run.folder.clone()]);
    }
    line(format_args!("{table}"));
    Ok(())
}

fn page(args: &HistoryPageArgs) -> Outcome {
    let margin = regression::margin(args.margin)?;
    let runs = select(&args.selection)?;
    interrupt::end_at_once("the catalogue has what was read, and half a comparison says nothing");
    let history = progress::during("looking for changes", || history(runs, margin, &args.join, SEED));
    require_parts(&args.join, &history)?;
    let page = HistoryPage { history: &history };
    if let Some(path) = &args.html {
        fs::write(path, page.html(env!("CARGO_PKG_VERSION")))
            .with_context(|| format!("--html: cannot write {}", path.display()))?;
    }
    let takeaway = page.takeaway();
    // The exit code tells what was found even where nobody reads on.
    let mut printed = Ok(());
    if args.json {
        printed = regression::print_json(&takeaway, history.is_regression(), &history);
    } else {
        text(&history, &takeaway);
        if let Some(path) = &args.html {
            say!("\npage: {}", path.display());
        }
    }
    let found = regression::Found {
        regression: history.is_regression(),
        judged: history.is_judged() && !history.is_not_comparable(),
        undecided: &history.undecided,
    };
    regression::fail(&args.fail_on, found, takeaway)?;
    printed
}

/// Refuses to join what no run has.
fn require_parts(join: &[String], history: &History) -> Outcome {
    let runs = || history.groups.iter().flat_map(|group| &group.runs);
    let unknown =
        join.iter().find(|part| runs().next().is_some() && !runs().any(|run| run.parts.contains_key(*part)));
    let Some(unknown) = unknown else { return Ok(()) };
    let known: BTreeSet<&str> = runs().flat_map(|run| run.parts.keys()).map(String::as_str).collect();
    let known = known.into_iter().collect::<Vec<_>>().join(", ");
    Err(Failure::message(
        Kind::Usage,
        format!("--join: {unknown} is no part of these runs; they have: {known}"),
    ))
}

/// What follows, then the headlines of every group of comparable runs.
fn text(history: &History, takeaway: &Takeaway) {
    for sentence in [&takeaway.headline].into_iter().chain(&takeaway.details).chain(&takeaway.cautions) {
        line(format_args!("{sentence}"));
    }
    for split in &history.splits {
        line(format_args!(
            "To compare runs of study {} though they differ in it: --join {}",
            split.study, split.part
        ));
    }
    for group in &history.groups {
        line(format_args!("\n{}, {} runs on {}", group.study, group.runs.len(), group.host));
        let mut table = TextTable::new(2, &[left(0), left(0), right(0), right(0), right(0)]);
        table.row(["measured", "what", "first", "latest", "changes"]);
        for series in group.series.iter().filter(|series| series.headline) {
            let (Some((_, first)), Some((_, latest))) = (series.values.first(), series.values.last()) else {
                continue;
            };
            let changes = series.changes.len().to_string();
            let [first, latest] = [first, latest].map(|value| with_unit(*value, &series.unit));
            table.row([&series.subject, &series.quantity, &first, &latest, &changes]);
        }
        line(format_args!("{table}"));
    }
}

fn tag(args: &HistoryTagArgs) -> Outcome {
    let tags = if args.tags.is_empty() && args.remove.is_empty() {
        read_provenance(&args.folder).map_err(CatalogueError::from).and_then(|_| read_tags(&args.folder))
    } else {
        write_tags(&args.folder, &args.tags, &args.remove)
    };
    for tag in tags.map_err(failure)? {
        say!("{tag}");
    }
    Ok(())
}

/// Reads every run of this machine again.
fn rebuild(args: &HistoryRebuildArgs) -> Outcome {
    let mut catalogue = open(args.catalogue.place.as_deref())?;
    let folders = whole_paths(&args.folders)?;
    if catalogue.is_read_only() {
        return Err(read_only("connect as a role that may write"));
    }
    let scanned = watched(|watch| catalogue.rebuild(&folders, watch))?;
    let Scanned { read, gone, unreadable, .. } = &scanned;
    say!(
        "{read} runs read again, {gone} forgotten whose folders are gone, {} not readable",
        unreadable.len()
    );
    Ok(())
}

fn open(named: Option<&Path>) -> Result<Catalogue, Failure> {
    let path = named.map(Path::to_owned).map_or_else(default_catalogue, Ok)?;
    Catalogue::open(place(&path)?).map_err(failure)
}

fn read_only(what_to_do: &str) -> Failure {
    Failure::message(Kind::Folder, format!("--catalogue: it can only be read: {what_to_do}"))
}

/// Looks through run folders with a bar; a signal ends that, and what was read by then is in the catalogue.
fn watched(look: impl FnOnce(Watch<'_>) -> Result<Scanned, CatalogueError>) -> Result<Scanned, Failure> {
    let bar = progress::spinner("looking for run folders");
    let looked = look(&mut |place, folders| {
        if place == 0 {
            progress::lengthen(&bar, folders as u64, "reading runs");
        }
        bar.set_position(place as u64);
        !interrupt::requested()
    });
    bar.finish_and_clear();
    let scanned = looked.map_err(failure)?;
    for (folder, why) in &scanned.unreadable {
        tell!("left out: {why} ({})", folder.display());
    }
    if scanned.stopped {
        let kept =
            format!("{} runs were read and are in the catalogue; the next look reads the rest", scanned.read);
        return Err(interrupt::failure(&kept));
    }
    Ok(scanned)
}

/// The runs that are meant, after a look at the folders that hold them.
fn select(selection: &SelectionArgs) -> Result<Vec<HistoryRun>, Failure> {
    let mut catalogue = open(selection.catalogue.place.as_deref())?;
    let folders = whole_paths(&selection.folders)?;
    look_through(&mut catalogue, &folders)?;
    if let Some(study) = &selection.study {
        say_studies(&catalogue, study)?;
    }
    let filter = Filter {
        folders,
        study: selection.study.clone(),
        host: selection.host.clone(),
        tags: selection.tag.clone(),
        since_unix_s: selection.since,
    };
    catalogue.runs(&filter).map_err(failure)
}

/// A file, or a database whose password is in the environment.
///
/// # Errors
/// It is an address of no catalogue.
pub fn place(named: &Path) -> Result<Place, Failure> {
    let password = std::env::var("PGPASSWORD").ok().filter(|password| !password.is_empty());
    Place::parse(named, password).map_err(failure)
}

fn look_through(catalogue: &mut Catalogue, folders: &[PathBuf]) -> Outcome {
    if !catalogue.is_read_only() {
        let look = |watch: Watch<'_>| {
            if folders.is_empty() { catalogue.refresh(watch) } else { catalogue.scan(folders, watch) }
        };
        return watched(look).map(drop);
    }
    if folders.is_empty() {
        tell!("the catalogue can only be read: no folder was looked through");
        return Ok(());
    }
    Err(read_only("leave the folders out, or connect as a role that may write"))
}

/// Says which studies there are, where none is of this one.
fn say_studies(catalogue: &Catalogue, study: &str) -> Outcome {
    let runs = catalogue.runs(&Filter::default()).map_err(failure)?;
    let studies: BTreeSet<&str> = runs.iter().map(|run| run.study.as_str()).collect();
    if !studies.is_empty() && !studies.contains(study) {
        let studies = studies.into_iter().collect::<Vec<_>>().join(", ");
        tell!("--study: no run is of study {study}; there are runs of {studies}");
    }
    Ok(())
}

fn whole_paths(folders: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    folders.iter().map(|folder| whole_path(folder)).collect()
}

fn whole_path(folder: &Path) -> Result<PathBuf, Failure> {
    folder
        .canonicalize()
        .with_context(|| format!("{}", folder.display()))
        .map_err(|error| Failure::new(Kind::Folder, error))
}

/// Where the catalogue is if nobody says otherwise.
///
/// # Errors
/// The user has no home.
pub fn default_catalogue() -> Result<PathBuf, Failure> {
    let data = virtbench_study::user_folder("XDG_DATA_HOME", ".local/share");
    data.map(|data| data.join("virtbench/history.sqlite")).ok_or_else(|| {
        Failure::message(Kind::Environment, "neither XDG_DATA_HOME nor HOME is set: give --catalogue FILE")
    })
}

fn failure(error: CatalogueError) -> Failure {
    let kind = match &error {
        CatalogueError::Tag(_) | CatalogueError::TooManyTags { .. } | CatalogueError::Address(_) => {
            Kind::Usage
        }
        _ => Kind::Folder,
    };
    Failure::new(kind, error)
}

fn began(run: &HistoryRun) -> String {
    moment(run.started_unix_s).replace('T', " ").replace('Z', "")
}

/// Its first headlines, ratios before others.
fn headlines(run: &HistoryRun) -> String {
    let mut headlines: Vec<&Measure> = run.measures.iter().filter(|measure| measure.headline).collect();
    headlines.sort_by_key(|measure| !measure.unit.is_empty());
    let in_words = |measure: &&Measure| {
        format!("{}: {} {}", measure.subject, measure.quantity, with_unit(measure.value, &measure.unit))
    };
    let words: Vec<String> = headlines.iter().take(LISTED).map(in_words).collect();
    if words.is_empty() { "unfinished".to_owned() } else { words.join("; ") }
}

//! `virtbench compare`: two runs of one plan, or of a platform.

#[cfg(feature = "full")]
mod past;
mod side;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use virtbench_model::before_after::{Change, Quantity};
use virtbench_model::platform::{PlatformRunOf, compare_platforms};
use virtbench_model::{BeforeAfter, Margin, before_after};
use virtbench_record::{Plan, Records};
use virtbench_report::{BeforeAfterPage, PlatformsPage, Takeaway};
use virtbench_runs::{LoadedRun, load_any_run, read_provenance};

use crate::args::compare::CompareRunsArgs;
use crate::commands::regression;
use crate::exit::{Failure, Kind, Outcome};
use crate::text_table::{TextTable, left};
use crate::{interrupt, progress};

/// Compares two runs of one plan, which are measured first if that is asked for.
pub fn execute(args: &CompareRunsArgs) -> Outcome {
    let margin = regression::margin(args.margin)?;
    let folders = folders(args)?;
    interrupt::end_at_once("the runs are as they were, and `virtbench compare` compares them again");
    if are_platforms([&folders[0], &folders[1]]) {
        return of_platforms(args, [&folders[0], &folders[1]], margin);
    }
    let [before, after] = [side::open(&folders[0])?, side::open(&folders[1])?];
    #[cfg(feature = "full")]
    let between = progress::during("looking for past runs", || {
        past::between(args.catalogue.as_deref(), [&folders[0], &folders[1]], &before)
    })?;
    // It is unknown without the catalogue.
    #[cfg(not(feature = "full"))]
    let between: Option<virtbench_model::before_after::BetweenRuns> = None;
    let compared = progress::during("comparing", || {
        before_after([&before.set(), &after.set()], margin, between.as_ref())
    });
    let names = folders.each_ref().map(|path| path.display().to_string());
    let page = BeforeAfterPage { compared: &compared, runs: [&names[0], &names[1]] };
    let beside = args.alternate.alternate.then(|| folders[0].with_file_name("report.html"));
    if let Some(path) = args.html.as_ref().or(beside.as_ref()) {
        fs::write(path, page.html(env!("CARGO_PKG_VERSION")))
            .with_context(|| format!("--html: cannot write {}", path.display()))?;
    }
    let takeaway = page.takeaway();
    // The exit code tells what was found even where nobody reads on.
    let printed = if args.json {
        regression::print_json(&takeaway, compared.is_regression(), &compared)
    } else if args.markdown {
        write!(io::stdout().lock(), "{}", page.markdown()).map_err(Failure::from)
    } else {
        text(&mut io::stdout().lock(), &compared, &takeaway).map_err(Failure::from)
    };
    if compared.environments.is_empty() {
        return Err(Failure::message(Kind::Undecided, takeaway.headline));
    }
    let found = regression::Found {
        regression: compared.is_regression(),
        judged: compared.is_judged() && !compared.is_not_comparable(),
        undecided: &compared.undecided,
    };
    regression::fail(&args.fail_on, found, takeaway)?;
    printed
}

/// The folders of both sides; measured now if that is asked for.
fn folders(args: &CompareRunsArgs) -> Result<[PathBuf; 2], Failure> {
    if args.alternate.alternate {
        return side::measure(args);
    }
    let named = args.before.clone().zip(args.after.clone());
    let (before, after) = named.ok_or_else(|| Failure::message(Kind::Usage, "name two run folders"))?;
    Ok([before, after])
}

/// What differs between the runs, then what follows, then every point.
fn text(out: &mut impl Write, compared: &BeforeAfter, takeaway: &Takeaway) -> io::Result<()> {
    for sentence in takeaway.cautions.iter().chain([&takeaway.headline]).chain(&takeaway.details) {
        writeln!(out, "{sentence}")?;
    }
    let mut table = TextTable::new(0, &[left(10), left(34), left(0), left(0), left(0)]);
    table.row(["", "after / before", "throughput", "mean latency", "99th percentile"]);
    let mut row = |name: &str, point: &str, changes: &[Change]| {
        let cells = Quantity::ALL
            .map(|quantity| Change::find(changes, quantity).map_or_else(|| "-".to_owned(), cell));
        table.row([name.to_owned(), point.to_owned()].into_iter().chain(cells));
    };
    for environment in &compared.environments {
        row(&environment.name, "all points", &environment.overall);
        for point in &environment.points {
            row("", &point.point.to_string(), &point.changes);
        }
    }
    writeln!(out, "\n{table}")
}

/// `0.803 worse`, or what there is to say of a side that completed nothing.
fn cell(change: &Change) -> String {
    let verdict = change.verdict.name();
    if change.is_stopped() {
        return format!("nothing completed, {verdict}");
    }
    if change.ratio.is_finite() { format!("{:.3} {verdict}", change.ratio) } else { format!("- {verdict}") }
}

/// Whether both folders hold runs of a platform.
fn are_platforms(folders: [&Path; 2]) -> bool {
    folders.iter().all(|folder| read_provenance(folder).is_ok_and(|run| run.plan.platform().is_some()))
}

/// Compares them.
fn of_platforms(args: &CompareRunsArgs, folders: [&Path; 2], margin: Margin) -> Outcome {
    let open = |folder: &Path| load_any_run(folder).map_err(|error| Failure::new(Kind::Folder, error));
    let runs = [open(folders[0])?, open(folders[1])?];
    let [Some(before), Some(after)] = runs.each_ref().map(of_platform) else {
        return Err(Failure::message(Kind::Folder, "a run of a platform has no plan of one: a defect"));
    };
    let compared = compare_platforms([before, after], margin);
    let names = folders.map(|folder| folder.display().to_string());
    let page = PlatformsPage { compared: &compared, runs: [&names[0], &names[1]] };
    if let Some(path) = &args.html {
        fs::write(path, page.html(env!("CARGO_PKG_VERSION")))
            .with_context(|| format!("--html: cannot write {}", path.display()))?;
    }
    let takeaway = page.takeaway();
    let out = &mut io::stdout().lock();
    // The exit code tells what was found even where nobody reads on.
    let printed = if args.json {
        regression::print_json(&takeaway, compared.is_regression(), &compared)
    } else if args.markdown {
        write!(out, "{}", page.markdown()).map_err(Failure::from)
    } else {
        let mut sentences = takeaway.cautions.iter().chain([&takeaway.headline]).chain(&takeaway.details);
        sentences.try_for_each(|sentence| writeln!(out, "{sentence}")).map_err(Failure::from)
    };
    if compared.domains.is_empty() {
        return Err(Failure::message(Kind::Undecided, "the two runs have no domain in common"));
    }
    let found = regression::Found {
        regression: compared.is_regression(),
        judged: compared.is_judged(),
        undecided: &compared.undecided(),
    };
    regression::fail(&args.fail_on, found, takeaway)?;
    printed
}

fn of_platform(run: &LoadedRun<Records>) -> Option<PlatformRunOf<'_>> {
    let Plan::Platform(plan) = &run.provenance.plan else { return None };
    Some(PlatformRunOf { provenance: &run.provenance, plan, records: run.records.samples() })
}

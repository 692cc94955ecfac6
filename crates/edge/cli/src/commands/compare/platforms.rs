//! Two runs of a platform: which domain moved.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context as _;
use virtbench_model::Margin;
use virtbench_model::platform::{PlatformRunOf, compare_platforms};
use virtbench_record::{Plan, Records};
use virtbench_report::PlatformsPage;
use virtbench_runs::{LoadedRun, load_any_run, read_provenance};

use crate::args::compare::CompareRunsArgs;
use crate::commands::regression;
use crate::exit::{Failure, Kind, Outcome};

/// Whether both folders hold runs of a platform.
pub fn are_platforms(folders: [&Path; 2]) -> bool {
    folders.iter().all(|folder| read_provenance(folder).is_ok_and(|run| run.plan.platform().is_some()))
}

/// Compares them.
pub fn execute(args: &CompareRunsArgs, folders: [&Path; 2], margin: Margin) -> Outcome {
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

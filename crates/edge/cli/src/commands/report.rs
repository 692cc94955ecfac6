//! `virtbench report`

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use virtbench_model::Margin;
use virtbench_record::{RunKind, SetRecord, Trial};
use virtbench_report::{
    Analysed, csv, html, predictions_html, sets_csv, sets_html, trials_csv, trials_markdown,
};
use virtbench_study::{LoadedRun, load_run, read_provenance};

use crate::args::ReportArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::say;

/// Every verdict of a study of configurations, in its folder.
const VERDICTS: &str = "verdicts.csv";
/// The tables of a study of predictions, in Markdown.
const TABLES: &str = "results.md";

fn compares_configurations(run: &LoadedRun) -> bool {
    run.provenance.kind == RunKind::Adapters
}

/// Writes the page and the CSV of a run folder and says where they are.
pub fn execute(args: &ReportArgs) -> Outcome {
    let about = read_provenance(&args.dir).map_err(|error| Failure::new(Kind::Folder, error))?;
    if matches!(about.kind, RunKind::Neighbours | RunKind::Deviation) {
        let (_, files) = write_sets(&args.dir, args.html.as_deref(), args.csv.as_deref())?;
        files.iter().for_each(|file| say!("{}", file.display()));
        return Ok(());
    }
    if about.kind == RunKind::Predictions {
        let (_, files) = write_predictions(&args.dir, args.html.as_deref(), args.csv.as_deref())?;
        files.iter().for_each(|file| say!("{}", file.display()));
        say!("{}", args.dir.join(TABLES).display());
        return Ok(());
    }
    let (run, files) = write(&args.dir, args.html.as_deref(), args.csv.as_deref())?;
    let verdicts = compares_configurations(&run).then(|| args.dir.join(VERDICTS));
    for file in files.into_iter().chain(verdicts) {
        say!("{}", file.display());
    }
    Ok(())
}

/// Writes the page and the CSV, and the verdicts of a study of configurations; returns the run and where
/// they are, in this order.
pub fn write(
    dir: &Path,
    html_path: Option<&Path>,
    csv_path: Option<&Path>,
) -> Result<(LoadedRun, [PathBuf; 2]), Failure> {
    let run = load_run(dir).map_err(|error| Failure::new(Kind::Folder, error))?;
    let [html_path, csv_path] = paths(dir, html_path, csv_path);
    let page = html(&run.provenance, &run.records, &run.histograms);
    save(&html_path, &page)?;
    save(&csv_path, &csv(&run.records)?)?;
    if compares_configurations(&run) {
        let analysed = Analysed::run(&run.provenance, &run.records, Margin::default());
        save(&dir.join(VERDICTS), &analysed.verdicts_csv()?)?;
    }
    Ok((run, [html_path, csv_path]))
}

/// The same of a run of sets of VMs.
pub fn write_sets(
    dir: &Path,
    html_path: Option<&Path>,
    csv_path: Option<&Path>,
) -> Result<(LoadedRun<SetRecord>, [PathBuf; 2]), Failure> {
    let run: LoadedRun<SetRecord> = load_run(dir).map_err(|error| Failure::new(Kind::Folder, error))?;
    let [html_path, csv_path] = paths(dir, html_path, csv_path);
    save(&html_path, &sets_html(&run.provenance, &run.records))?;
    save(&csv_path, &sets_csv(&run.records)?)?;
    Ok((run, [html_path, csv_path]))
}

/// The same of a run of predictions, and its tables for a document.
pub fn write_predictions(
    dir: &Path,
    html_path: Option<&Path>,
    csv_path: Option<&Path>,
) -> Result<(LoadedRun<Trial>, [PathBuf; 2]), Failure> {
    let run: LoadedRun<Trial> = load_run(dir).map_err(|error| Failure::new(Kind::Folder, error))?;
    let [html_path, csv_path] = paths(dir, html_path, csv_path);
    save(&html_path, &predictions_html(&run.provenance, &run.records))?;
    save(&csv_path, &trials_csv(&run.records))?;
    save(&dir.join(TABLES), &trials_markdown(&run.records))?;
    Ok((run, [html_path, csv_path]))
}

/// Where the page and the CSV go.
fn paths(dir: &Path, html: Option<&Path>, csv: Option<&Path>) -> [PathBuf; 2] {
    [
        html.map_or_else(|| dir.join("report.html"), Path::to_owned),
        csv.map_or_else(|| dir.join("results.csv"), Path::to_owned),
    ]
}

fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

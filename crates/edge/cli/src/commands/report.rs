//! `virtbench report`

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use virtbench_report::{csv, html};
use virtbench_study::{LoadedRun, load_run};

use crate::args::ReportArgs;
use crate::exit::{Failure, Kind, Outcome};

/// Writes the page and the CSV of a run folder and says where they are.
pub fn execute(args: &ReportArgs) -> Outcome {
    let (_, files) = write(&args.dir, args.html.as_deref(), args.csv.as_deref())?;
    for file in files {
        println!("{}", file.display());
    }
    Ok(())
}

/// Writes the page and the CSV; returns the run and where they are.
pub fn write(
    dir: &Path,
    html_path: Option<&Path>,
    csv_path: Option<&Path>,
) -> Result<(LoadedRun, [PathBuf; 2]), Failure> {
    let run = load_run(dir).map_err(|error| Failure::new(Kind::Folder, error))?;
    let html_path = html_path.map_or_else(|| dir.join("report.html"), Path::to_owned);
    let csv_path = csv_path.map_or_else(|| dir.join("results.csv"), Path::to_owned);
    let page = html(&run.provenance, &run.records, &run.histograms);
    let save = |path: &Path, text: &str| {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    };
    save(&html_path, &page)?;
    save(&csv_path, &csv(&run.records)?)?;
    Ok((run, [html_path, csv_path]))
}

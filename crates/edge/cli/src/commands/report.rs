//! `virtbench report`

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use virtbench_record::Records;
use virtbench_report::{Documents, documents};
use virtbench_runs::{LoadedRun, load_any_run};

use crate::args::ReportArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::say;

/// A run whose page, CSV and what else its study has are written.
pub struct Written {
    /// The run.
    pub run: LoadedRun<Records>,
    /// Where the page and the CSV are.
    pub files: [PathBuf; 2],
    /// Where the rest is.
    more: Option<PathBuf>,
}

/// Writes the page and the CSV of a run folder and says where they are.
pub fn execute(args: &ReportArgs) -> Outcome {
    let written = write_to(&args.dir, args.html.as_deref(), args.csv.as_deref())?;
    for file in written.files.into_iter().chain(written.more) {
        say!("{}", file.display());
    }
    Ok(())
}

/// Writes the page and the CSV of a run into its folder.
///
/// # Errors
/// There is no run, or a file cannot be written.
pub fn write(dir: &Path) -> Result<Written, Failure> {
    write_to(dir, None, None)
}

fn write_to(dir: &Path, html: Option<&Path>, csv: Option<&Path>) -> Result<Written, Failure> {
    let run = load_any_run(dir).map_err(|error| Failure::new(Kind::Folder, error))?;
    let files = [
        html.map_or_else(|| dir.join("report.html"), Path::to_owned),
        csv.map_or_else(|| dir.join("results.csv"), Path::to_owned),
    ];
    let Documents { html, csv, more } = documents(&run.provenance, &run.records, &run.histograms)?;
    save(&files[0], &html)?;
    save(&files[1], &csv)?;
    let more = match more {
        Some((name, text)) => {
            let path = dir.join(name);
            save(&path, &text)?;
            Some(path)
        }
        None => None,
    };
    Ok(Written { run, files, more })
}

fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

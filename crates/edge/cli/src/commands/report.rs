//! `virtbench report`

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use virtbench_record::Records;
use virtbench_report::{Documents, documents, html, outline};
use virtbench_runs::{LoadedRun, load_any_run};

use crate::args::compare::{ReportArgs, ReportFormat};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::say;
use crate::{interrupt, progress};

/// A run whose page, CSV and what else its study has are written.
pub struct Written {
    /// The run.
    pub run: LoadedRun<Records>,
    /// Where the page and the CSV are.
    pub files: [PathBuf; 2],
    /// Where the rest is.
    more: Option<PathBuf>,
}

/// Writes what was asked for of a run folder, and says where it is unless it went to stdout.
pub fn execute(args: &ReportArgs) -> Outcome {
    interrupt::end_at_once("the run is as it was, and `virtbench report` writes the rest of its files");
    if let Some(format) = args.format {
        return one_form(args, format);
    }
    let written = write_to(&args.dir, args.html.as_deref(), args.csv.as_deref())?;
    for file in written.files.into_iter().chain(written.more) {
        say!("{}", file.display());
    }
    Ok(())
}

fn one_form(args: &ReportArgs, format: ReportFormat) -> Outcome {
    let LoadedRun { provenance, records, histograms, .. } = load(&args.dir)?;
    let outline = || outline(&provenance, &records, &histograms);
    let drawing = progress::spinner("writing the report");
    let text = match format {
        ReportFormat::Html => html(&provenance, &records, &histograms),
        ReportFormat::Markdown => outline().markdown(),
        ReportFormat::Text => outline().text(),
        ReportFormat::Line => outline().line(),
        ReportFormat::Csv => documents(&provenance, &records, &histograms)?.csv,
        ReportFormat::Svg => {
            let folder = args.out.clone().unwrap_or_else(|| args.dir.join("figures"));
            fs::create_dir_all(&folder)
                .with_context(|| format!("cannot make the folder {}", folder.display()))?;
            let files = outline().svgs();
            drawing.finish_and_clear();
            for file in files {
                let path = folder.join(&file.name);
                save(&path, &file.text)?;
                say!("{}", path.display());
            }
            return Ok(());
        }
    };
    drawing.finish_and_clear();
    match &args.out {
        Some(path) => {
            save(path, &text)?;
            say!("{}", path.display());
        }
        None => std::io::stdout().lock().write_all(text.as_bytes())?,
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

fn load(dir: &Path) -> Result<LoadedRun<Records>, Failure> {
    progress::during("reading the run", || load_any_run(dir))
        .map_err(|error| Failure::new(Kind::Folder, error))
}

fn write_to(dir: &Path, html: Option<&Path>, csv: Option<&Path>) -> Result<Written, Failure> {
    let run = load(dir)?;
    let files = [
        html.map_or_else(|| dir.join("report.html"), Path::to_owned),
        csv.map_or_else(|| dir.join("results.csv"), Path::to_owned),
    ];
    let Documents { html, csv, more } =
        progress::during("writing the report", || documents(&run.provenance, &run.records, &run.histograms))?;
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

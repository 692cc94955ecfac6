//! `virtbench papers`: runs beside what five papers conclude.

use std::fs;
use std::io::Write;

use anyhow::Context;
use virtbench_history::run_folders;
use virtbench_model::papers::{PaperRun, judge_claims};
use virtbench_record::Records;
use virtbench_report::papers_markdown;
use virtbench_runs::{LoadedRun, load_any_run};

use crate::args::compare::PapersArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{print_json, say};
use crate::{interrupt, progress};

/// Holds runs beside every conclusion, and writes a document of it.
pub fn execute(args: &PapersArgs) -> Outcome {
    interrupt::end_at_once("the runs are as they were");
    let loaded = progress::during("reading runs", || load(args))?;
    let runs: Vec<PaperRun<'_>> = loaded
        .iter()
        .map(|(folder, run)| PaperRun { folder, provenance: &run.provenance, records: &run.records })
        .collect();
    let judged = judge_claims(&runs);
    if args.json {
        print_json(&judged)?;
    } else {
        let document = papers_markdown(&judged, &runs);
        match &args.out {
            Some(path) => {
                fs::write(path, document).with_context(|| format!("cannot write {}", path.display()))?;
                say!("{}", path.display());
            }
            None => std::io::stdout().lock().write_all(document.as_bytes())?,
        }
    }
    if judged.hold + judged.fail == 0 {
        return Err(Failure::message(
            Kind::Undecided,
            "no run decides a conclusion of the papers; the document names the study that measures each",
        ));
    }
    Ok(())
}

/// Every run that is named or lies in a folder that is, with its folder, in the order in which they are named.
fn load(args: &PapersArgs) -> Result<Vec<(String, LoadedRun<Records>)>, Failure> {
    let mut loaded = Vec::new();
    for named in &args.runs {
        let folders = run_folders(named);
        if folders.is_empty() {
            let why = if named.is_dir() { "there is no run in it" } else { "there is no such folder" };
            return Err(Failure::message(Kind::Folder, format!("{}: {why}", named.display())));
        }
        for folder in folders {
            let run = load_any_run(&folder).map_err(|error| Failure::new(Kind::Folder, error))?;
            loaded.push((folder.display().to_string(), run));
        }
    }
    Ok(loaded)
}

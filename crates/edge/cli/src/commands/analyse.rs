//! `virtbench analyse`

mod application;
mod operations;
mod output;
mod table;
mod tiles;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use virtbench_formats::{AnyTable, MAX_TABLE_BYTES, OperationsTable, read_any_table};
use virtbench_model::summarise_analysis;
use virtbench_record::{ApplicationTable, Plan, Records, ResultTable, TileTable};
use virtbench_report::Analysed;
use virtbench_runs::{LoadedRun, load_any_run};

use self::output::{comparing, concluded, save, sentences};
use crate::args::analyse::AnalyseArgs;
use crate::commands::regression;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;
use crate::{interrupt, progress};

/// What was found at the path given.
enum Source {
    Run(Box<LoadedRun<Records>>),
    Table(ResultTable),
    Application(ApplicationTable),
    Tiles(TileTable),
    Operations(OperationsTable),
}

/// Compares the configurations of a table or a run with each other.
pub fn execute(args: &AnalyseArgs) -> Outcome {
    let margin = regression::margin(args.margin)?;
    interrupt::end_at_once("the run or the table is as it was, and half an analysis says nothing");
    let source = progress::during("reading", || open(&args.source))?;
    let analysed = match &source {
        Source::Run(run) => comparing(|| Analysed::run(&run.provenance, run.records.points(), margin)),
        Source::Table(table) => comparing(|| Analysed::table(table, margin)),
        Source::Application(table) => return application::show(args, table),
        Source::Tiles(table) => return tiles::show(args, table),
        Source::Operations(table) => return operations::show(args, table),
    };
    if let Some(path) = &args.html {
        save(path, &analysed.html())?;
    }
    if let Some(path) = &args.csv {
        save(path, &analysed.verdicts_csv()?)?;
    }
    let takeaway = analysed.takeaway();
    let mut out = io::stdout().lock();
    if args.json {
        let records = if let Source::Run(run) = &source { run.records.points() } else { &[] };
        let conclusion = concluded(args, &takeaway);
        return Ok(print_json(&summarise_analysis(conclusion, &analysed.analysis, records))?);
    }
    sentences(&mut out, &takeaway)?;
    table::write(&mut out, &analysed.analysis)?;
    Ok(())
}

fn open(path: &Path) -> Result<Source, Failure> {
    if path.is_dir() {
        let run = load_any_run(path).map_err(|error| Failure::new(Kind::Folder, error))?;
        let what = match run.provenance.plan {
            Plan::NativeVsVm(_) | Plan::Adapters(_) | Plan::Compare(_) => {
                return Ok(Source::Run(Box::new(run)));
            }
            Plan::Neighbours(_) | Plan::Deviation(_) => "VMs side by side",
            Plan::Predictions(_) => "predictions",
            Plan::Oltp(_) => "a database",
            Plan::Operations(_) => "management operations",
            Plan::Application(_) => "an application",
            Plan::Desktops(_) => "desktops",
            Plan::Tiles(_) => "tiles",
            Plan::Network(_) => "network paths",
            Plan::Platform(_) => "a platform",
        };
        let message = format!("{0} is a run of {what}: `virtbench report {0}` shows it", path.display());
        return Err(Failure::message(Kind::Usage, message));
    }
    let refused = |error: &dyn std::fmt::Display| {
        Failure::message(Kind::Usage, format!("cannot read {}: {error}", path.display()))
    };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MAX_TABLE_BYTES as u64 + 1).read_to_end(&mut bytes))
        .map_err(|error| refused(&error))?;
    match read_any_table(&bytes).map_err(|error| refused(&error))? {
        AnyTable::Points(table) => Ok(Source::Table(table)),
        AnyTable::Application(table) => Ok(Source::Application(table)),
        AnyTable::Tiles(table) => Ok(Source::Tiles(table)),
        AnyTable::Operations(table) => Ok(Source::Operations(table)),
    }
}

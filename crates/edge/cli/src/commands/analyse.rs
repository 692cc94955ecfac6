//! `virtbench analyse`: of a run or a table, the conclusion, and a table of points, applications, tiles or management operations.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use virtbench_formats::{AnyTable, MAX_TABLE_BYTES, OperationsTable, read_any_table};
use virtbench_model::operations::{OperationsAnalysis, growth, summarise_operations};
use virtbench_model::pairwise::{self, Advice, Cell, Finding, Metric, Pair, SMALL_MOST_BYTES, Standing};
use virtbench_model::{
    Analysis, ApplicationAnalysis, Side, TilesAnalysis, analyse_application, analyse_tiles,
    summarise_analysis, summarise_application, summarise_tiles,
};
use virtbench_record::{
    ApplicationTable, Conclusion, OperationKind, Plan, PointKey, Quantity, Records, ResultTable, TileTable,
};
use virtbench_report::{Analysed, ApplicationPage, Takeaway, TilesPage, growth_takeaway, with_unit};
use virtbench_runs::{LoadedRun, load_any_run};
use virtbench_units::format_bytes;

use crate::args::compare::AnalyseArgs;
use crate::commands::regression;
use crate::commands::study_runs::conclusion;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;
use crate::text_table::{TextTable, left, right};
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
        Source::Application(table) => return show_application(args, table),
        Source::Tiles(table) => return show_tiles(args, table),
        Source::Operations(table) => return show_operations(args, table),
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
    write(&mut out, &analysed.analysis)?;
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

/// Seed of the bootstraps: the same table always comes to the same conclusions.
const SEED: u64 = 2_014;

/// The least width of a column of numbers.
const WIDTH: u16 = 12;

/// Compares the sides of an application with the first of them.
fn show_application(args: &AnalyseArgs, table: &ApplicationTable) -> Outcome {
    if args.csv.is_some() {
        let why = "--csv writes verdicts on points of a storage load, and this table is an application's: leave it out";
        return Err(Failure::message(Kind::Usage, why));
    }
    let analysis = comparing(|| analyse_application(&table.rows, SEED));
    let page = ApplicationPage { table, analysis: &analysis };
    if let Some(path) = &args.html {
        save(path, &page.html())?;
    }
    let takeaway = page.takeaway();
    let mut out = io::stdout().lock();
    if args.json {
        return Ok(print_json(&summarise_application(concluded(args, &takeaway), &analysis))?);
    }
    sentences(&mut out, &takeaway)?;
    writeln!(out, "\n{}", every_figure(&analysis))?;
    Ok(())
}

/// A row for each quantity, a column for each side and each ratio.
fn every_figure(analysis: &ApplicationAnalysis) -> TextTable {
    let columns = analysis.sides.len() + analysis.ratios.len();
    let mut table = TextTable::new(0, &[&[left(26)][..], &vec![right(WIDTH); columns]].concat());
    let names = analysis.sides.iter().map(|side| side.name.clone());
    let ratios =
        analysis.ratios.iter().map(|against| format!("{}, ratio", analysis.sides[against.side].name));
    table.row(std::iter::once(String::new()).chain(names).chain(ratios));
    for quantity in Quantity::ALL {
        if analysis.sides.iter().all(|side| !side.known.contains_key(&quantity)) {
            continue;
        }
        let shown = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| with_unit(value, ""));
        let values =
            analysis.sides.iter().map(|side| shown(side.known.get(&quantity).map(|known| known.mean)));
        let ratios = analysis
            .ratios
            .iter()
            .map(|against| shown(against.ratios.get(&quantity).map(|known| known.value)));
        table.row(std::iter::once(quantity.name().to_owned()).chain(values).chain(ratios));
    }
    table
}

/// Says how each operation's latency grows.
fn show_operations(args: &AnalyseArgs, table: &OperationsTable) -> Outcome {
    if args.csv.is_some() || args.html.is_some() {
        let why = "--csv and --html are for tables of storage loads and applications, and this one is of operations: leave them out";
        return Err(Failure::message(Kind::Usage, why));
    }
    let points = |kind: OperationKind| -> Vec<(f64, f64)> {
        let of_kind = table.rows.iter().filter(|row| row.kind == kind);
        of_kind.map(|row| (row.vms, row.latency_s)).collect()
    };
    let growth: BTreeMap<OperationKind, _> =
        OperationKind::ALL.into_iter().filter_map(|kind| Some((kind, growth(&points(kind))?))).collect();
    let vms = table.rows.iter().map(|row| row.vms);
    let (fewest, most) = vms.fold((f64::INFINITY, 0.0f64), |(low, high), vms| (low.min(vms), high.max(vms)));
    let takeaway = growth_takeaway(&growth, fewest, most);
    if args.json {
        let analysis = OperationsAnalysis {
            steps: Vec::new(),
            growth,
            tenants: Vec::new(),
            sustained_per_minute: None,
            untold_below_per_minute: None,
            incomplete: Vec::new(),
        };
        let summary = summarise_operations(concluded(args, &takeaway), &analysis);
        return Ok(print_json(&summary)?);
    }
    Ok(sentences(&mut io::stdout().lock(), &takeaway)?)
}

/// Computes the intervals, of which a large table has many.
fn comparing<T>(work: impl FnOnce() -> T) -> T {
    progress::during("comparing", work)
}

fn save(path: &Path, text: &str) -> anyhow::Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

fn concluded(args: &AnalyseArgs, takeaway: &Takeaway) -> Conclusion {
    let path = |path: &Option<PathBuf>| path.as_deref().unwrap_or(Path::new("")).to_owned();
    conclusion(&args.source, &[path(&args.html), path(&args.csv)], takeaway)
}

fn sentences(out: &mut impl Write, takeaway: &Takeaway) -> io::Result<()> {
    let Takeaway { headline, details, cautions } = takeaway;
    std::iter::once(headline)
        .chain(details)
        .chain(cautions)
        .try_for_each(|sentence| writeln!(out, "{sentence}"))
}

/// Scores the tiles of each configuration.
fn show_tiles(args: &AnalyseArgs, table: &TileTable) -> Outcome {
    if args.csv.is_some() {
        let why =
            "--csv writes verdicts on points of a storage load, and this table is one of tiles: leave it out";
        return Err(Failure::message(Kind::Usage, why));
    }
    let analysis = comparing(|| analyse_tiles(&table.rows, SEED));
    let page = TilesPage { table, analysis: &analysis };
    if let Some(path) = &args.html {
        save(path, &page.html())?;
    }
    let takeaway = page.takeaway();
    if args.json {
        return Ok(print_json(&summarise_tiles(concluded(args, &takeaway), &analysis))?);
    }
    let mut out = io::stdout().lock();
    sentences(&mut out, &takeaway)?;
    writeln!(out, "\n{}", every_count(&analysis))?;
    Ok(())
}

/// A row for each member at each number of tiles.
fn every_count(analysis: &TilesAnalysis) -> TextTable {
    let columns = [left(16), right(5), right(9), right(8), left(12), right(12), right(11), right(6)];
    let mut table = TextTable::new(0, &columns);
    table.row([
        "configuration",
        "tiles",
        "runs held",
        "score",
        "member",
        "of reference",
        "of one tile",
        "broken",
    ]);
    let shown = |value: Option<f64>| value.map_or_else(|| "-".into(), |value| with_unit(value, ""));
    for one in &analysis.configurations {
        for step in &one.steps {
            for (place, member) in step.members.iter().enumerate() {
                let mut cells = match place {
                    0 => vec![
                        one.name.clone(),
                        step.tiles.to_string(),
                        format!("{} of {}", step.held, step.runs),
                        step.score().map_or_else(|| "void".into(), |score| with_unit(score.mean, "")),
                    ],
                    _ => vec![String::new(); 4],
                };
                cells.extend([
                    member.name.clone(),
                    shown(member.normalised.map(|done| done.mean)),
                    shown(member.of_one_tile.map(|left| left.value)),
                    member.broken.to_string(),
                ]);
                table.row(cells);
            }
        }
    }
    table
}

/// The least width of a column.
const NUMBER_WIDTH: u16 = 14;

/// Writes the tables of [ESX Adapters 2006] (its Figures 6 to 9 as numbers), then what every pair comes to.
fn write(out: &mut impl Write, analysis: &Analysis) -> io::Result<()> {
    kinds(out, analysis)?;
    figures(out, analysis, "I/O per second for each percent of host CPU", Side::iops_per_cpu_percent)?;
    figures(out, analysis, "KB/s for each percent of host CPU", |side| {
        side.bytes_per_second_per_cpu_percent().map(|bytes| bytes / 1e3)
    })?;
    for pair in &analysis.pairs {
        verdicts(out, analysis, pair)?;
    }
    Ok(())
}

/// What to use for each kind of I/O, and how far the others are from the best.
fn kinds(out: &mut impl Write, analysis: &Analysis) -> io::Result<()> {
    writeln!(out, "\nBy kind of I/O: mean throughput against the best, I/O per %CPU")?;
    for group in &analysis.groups {
        let size = if group.small { "up to" } else { "above" };
        let (kind, limit) = (group.kind, format_bytes(SMALL_MOST_BYTES));
        let names = |standings: &[&Standing]| -> String {
            let names: Vec<&str> = standings.iter().map(|one| analysis.name(one.configuration)).collect();
            names.join(" or ")
        };
        let advice = match analysis.advice(group) {
            Advice::Use(choices) => format!("use {}", names(&choices)),
            Advice::NotTold { best, others } => {
                format!("not told: {}", names(&[&[best][..], &others].concat()))
            }
            Advice::NotMeasured => "not measured".to_owned(),
        };
        writeln!(out, "{kind} {size} {limit}: {advice}")?;
        let mut table = TextTable::new(2, &[left(30), left(24), right(10)]);
        for standing in &group.standings {
            let against = standing.against_best.map_or_else(
                || "best".into(),
                |judged| format!("{:.3}, {}", judged.ratio.value, judged.finding.name()),
            );
            let cost =
                standing.iops_per_cpu_percent.map_or_else(|| "-".into(), |value| format!("{value:.1}"));
            table.row([analysis.name(standing.configuration).to_owned(), against, cost]);
        }
        if !group.standings.is_empty() {
            writeln!(out, "{table}")?;
        }
    }
    Ok(())
}

/// A row for each point, a column for each configuration.
fn figures(
    out: &mut impl Write,
    analysis: &Analysis,
    title: &str,
    figure: impl Fn(&Side) -> Option<f64>,
) -> io::Result<()> {
    let names = &analysis.measurements.configurations;
    let mut table =
        TextTable::new(0, &[&[right(10), left(22)][..], &vec![right(NUMBER_WIDTH); names.len()]].concat());
    table.row([String::new(), String::new()].into_iter().chain(names.iter().cloned()));
    for (key, cells) in by_kind(analysis) {
        let value =
            |cell: &Cell| figure(&cell.side).map_or_else(|| "-".into(), |value| format!("{value:.1}"));
        let point = [format_bytes(key.block_bytes), pairwise::Kind::from(*key).to_string()];
        table.row(point.into_iter().chain(cells.iter().map(value)));
    }
    writeln!(out, "\n{title}\n{table}")
}

/// Points of one kind together, small blocks first.
fn by_kind(analysis: &Analysis) -> Vec<(&PointKey, &Vec<Cell>)> {
    let mut points: Vec<_> = analysis.measurements.points.iter().collect();
    points.sort_by_key(|(key, _)| (key.random_percent, key.read_percent, key.block_bytes));
    points
}

fn point(key: PointKey) -> String {
    format!("{:>10}  {}", format_bytes(key.block_bytes), pairwise::Kind::from(key))
}

const QUANTITIES: [(Metric, &str); 3] = [
    (Metric::Rate, "throughput, I/O rate"),
    (Metric::Efficiency, "I/O and KB/s per %CPU"),
    (Metric::ResponseTime, "response time"),
];

fn verdicts(out: &mut impl Write, analysis: &Analysis, pair: &Pair) -> io::Result<()> {
    let (first, second) = (analysis.name(pair.first), analysis.name(pair.second));
    writeln!(out, "\n{first} against {second}")?;
    for (metric, name) in QUANTITIES {
        let tally = pair.tally(metric);
        if tally.points() == 0 {
            writeln!(out, "  {name:<30}not known on both sides")?;
            continue;
        }
        writeln!(
            out,
            "  {name:<30}equivalent at {}, higher at {}, lower at {}, undecided at {} of {}",
            tally.equivalent,
            tally.higher,
            tally.lower,
            tally.undecided,
            tally.points()
        )?;
        for item in &pair.points {
            let Some(judged) = item.judged(metric).filter(|judged| judged.finding != Finding::Equivalent)
            else {
                continue;
            };
            let interval = judged.ratio.interval.map_or_else(
                || ", no spread given".into(),
                |span| format!(" ({:.3} to {:.3})", span.low, span.high),
            );
            let finding = judged.finding.name();
            writeln!(out, "  {:<30}{finding:<11}{:.3}{interval}", point(item.key), judged.ratio.value)?;
        }
    }
    Ok(())
}

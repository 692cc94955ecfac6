//! An analysis for people.

use std::io::{self, Write};

use virtbench_model::pairwise::{Advice, Cell, Finding, Kind, Metric, Pair, SMALL_MOST_BYTES, Standing};
use virtbench_model::{Analysis, Side};
use virtbench_record::PointKey;
use virtbench_units::format_bytes;

use crate::text_table::{TextTable, left, right};

/// The least width of a column.
const WIDTH: u16 = 14;

/// Writes the tables of [ESX Adapters 2006] (its Figures 6 to 9 as numbers), then what every pair comes to.
pub fn write(out: &mut impl Write, analysis: &Analysis) -> io::Result<()> {
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
        TextTable::new(0, &[&[right(10), left(22)][..], &vec![right(WIDTH); names.len()]].concat());
    table.row([String::new(), String::new()].into_iter().chain(names.iter().cloned()));
    for (key, cells) in by_kind(analysis) {
        let value =
            |cell: &Cell| figure(&cell.side).map_or_else(|| "-".into(), |value| format!("{value:.1}"));
        let point = [format_bytes(key.block_bytes), Kind::from(*key).to_string()];
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
    format!("{:>10}  {}", format_bytes(key.block_bytes), Kind::from(key))
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

//! The rows as text.

use std::io::{self, Write};

use super::evaluated::Evaluated;
use super::{best_effort, reasons};
use crate::text_table::{TextTable, left, right};
use virtbench_fence_evaluation::{PaperFigure, Published, Row};
use virtbench_fence_sim::calibrate::Errors;
use virtbench_report::FenceTable;

/// Writes how much is as published, the calibration, a table for each figure, and what is found of its shape.
pub fn write(out: &mut impl Write, evaluated: &Evaluated) -> io::Result<()> {
    let Evaluated { calibration, rows, findings, tally, misses, guards, .. } = evaluated;
    writeln!(out, "{}", tally.sentence())?;
    writeln!(out, "\nPredictors calibrated as section 6.3 does; errors on held-out batches")?;
    for (device, errors) in [("HDD", &calibration.slow), ("SSD", &calibration.fast)] {
        write_errors(out, device, errors)?;
    }
    for figure in PaperFigure::ALL {
        let of_figure: Vec<&Row> = rows.iter().filter(|row| row.figure == figure).collect();
        if of_figure.is_empty() {
            continue;
        }
        writeln!(out, "\nFigure {}: {}", figure.name(), figure.title())?;
        writeln!(out, "{}", rows_table(&of_figure))?;
        for finding in findings.iter().filter(|finding| finding.figure == figure) {
            let (workload, verdict) = (finding.workload.name(), finding.verdict.name());
            writeln!(out, "  {workload}: {}: {verdict} ({})", finding.claim, finding.measured)?;
        }
    }
    for table in [best_effort::table(guards), reasons::table(misses)].into_iter().flatten() {
        plain(out, &table)?;
    }
    Ok(())
}

fn write_errors(out: &mut impl Write, device: &str, errors: &Errors) -> io::Result<()> {
    let quantiles: Vec<String> = errors.quantiles_ms.iter().map(|ms| short(*ms)).collect();
    writeln!(
        out,
        "  {device}: {:.1} accesses, {} ms a batch; {:.0} % within {} ms; 5, 25, 50, 75, 95 %: {} ms",
        errors.mean_batch,
        short(errors.mean_service_ms),
        errors.within * 100.0,
        errors.limit_ms,
        quantiles.join(", ")
    )
}

fn rows_table(rows: &[&Row]) -> TextTable {
    let words = [left(11), left(21), left(11), left(24)];
    let mut table =
        TextTable::new(2, &[&words[..], &[right(9), right(15), right(15), left(11), left(0)]].concat());
    table.row([
        "workload",
        "system",
        "machine",
        "metric",
        "measured",
        "95 % interval",
        "least, most",
        "published",
        "verdict",
    ]);
    for row in rows {
        table.row(cells(row));
    }
    table
}

fn cells(row: &Row) -> [String; 9] {
    let interval = row
        .measured
        .span()
        .map_or_else(String::new, |span| format!("{} to {}", short(span.low), short(span.high)));
    let system = match (row.x, row.figure.axis()) {
        (Some(x), Some(axis)) => format!("{x} {}", axis.split(',').next().unwrap_or(axis)),
        _ => row.system.clone(),
    };
    [
        row.workload.name().to_owned(),
        system,
        row.machine.name().to_owned(),
        format!("{}, {}", row.metric.name(), row.metric.unit()),
        short(row.measured.mean),
        interval,
        format!("{}, {}", short(row.range.low), short(row.range.high)),
        row.published.as_ref().map_or_else(String::new, Published::brief),
        verdict(row),
    ]
}

fn verdict(row: &Row) -> String {
    match row.outside() {
        None => String::new(),
        Some(0.0) => "held".into(),
        Some(outside) => {
            let unit = if row.metric.unit() == "%" { "points" } else { row.metric.unit() };
            format!("not held, by {} {unit}", short(outside.abs()))
        }
    }
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        x if x >= 100.0 => format!("{value:.0}"),
        x if x >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A table of the page as text.
pub fn plain(out: &mut impl Write, table: &FenceTable) -> io::Result<()> {
    let mut text = TextTable::new(2, &vec![left(0); table.header.len()]);
    for row in std::iter::once(&table.header).chain(&table.rows) {
        text.row(row);
    }
    writeln!(out, "\n{}\n{text}", table.title)
}

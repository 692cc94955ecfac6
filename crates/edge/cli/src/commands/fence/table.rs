//! The rows as text.

use std::io::{self, Write};

use virtbench_fence_sim::experiment::Row;

/// Writes the rows, a table for each figure.
pub fn write(out: &mut impl Write, rows: &[Row]) -> io::Result<()> {
    let mut last = None;
    for row in rows {
        if last != Some(row.figure) {
            writeln!(
                out,
                "{}Figure {}: {}",
                if last.is_some() { "\n" } else { "" },
                row.figure.name(),
                row.figure.title()
            )?;
            writeln!(
                out,
                "  {:<11} {:<26} {:<21} {:>9} {:>18}  {:<11} verdict",
                "workload", "system", "of the VM", "measured", "95 % interval", "published"
            )?;
            last = Some(row.figure);
        }
        let interval = row
            .measured
            .span()
            .map_or_else(String::new, |span| format!("{} to {}", short(span.low), short(span.high)));
        let metric = format!("{}, {}", row.metric.name(), row.metric.unit());
        writeln!(
            out,
            "  {:<11} {:<26} {:<21} {:>9} {:>18}  {:<11} {}",
            row.workload.name(),
            row.system,
            metric,
            short(row.measured.mean),
            interval,
            row.published.as_ref().map_or_else(String::new, |published| published.brief()),
            verdict(row)
        )?;
    }
    Ok(())
}

fn verdict(row: &Row) -> String {
    match row.outside() {
        None => String::new(),
        Some(outside) if outside == 0.0 => "held".into(),
        Some(outside) => format!("not held, by {} {}", short(outside.abs()), row.metric.unit()),
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

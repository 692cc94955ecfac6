//! A look as tables, of which those are left out that no disk has anything for.

use std::fmt::Write as _;

use virtbench_record::{DiskStatus, FenceStatus, OfWindow, PredictionStatus, SteadinessStatus};

/// Column heads and rows; the first column is to the left.
struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    fn new<const N: usize>(heads: [&str; N]) -> Self {
        Self { heads: heads.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    fn write(&self, text: &mut String) {
        if self.rows.is_empty() {
            return;
        }
        let lines = || std::iter::once(&self.heads).chain(&self.rows);
        let width = |at: usize| lines().map(|line| line[at].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.heads.len()).map(width).collect();
        if !text.is_empty() {
            text.push('\n');
        }
        for line in lines() {
            for (at, (cell, width)) in line.iter().zip(&widths).enumerate() {
                let _ = if at == 0 {
                    write!(text, "{cell:<width$}", width = width)
                } else {
                    write!(text, "  {cell:>width$}", width = width)
                };
            }
            text.push('\n');
        }
    }
}

/// With the pool, where there are several.
fn name(disk: &DiskStatus) -> String {
    disk.pool.as_ref().map_or_else(|| disk.disk.clone(), |pool| format!("{pool}: {}", disk.disk))
}

fn some(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// A second, where the look was of a span of time.
fn megabytes(status: &FenceStatus, bytes: f64) -> String {
    format!("{:.1}", bytes / 1e6 / status.seconds.unwrap_or(1.0).max(1e-9))
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{:.1}%", value * 100.0))
}

/// All of it.
pub fn text(status: &FenceStatus) -> String {
    let mut text = String::new();
    for table in [
        requests(status),
        response_times(status),
        bypassed(status),
        slots(status),
        predictions(status),
        tokens(status),
        paced(status),
    ] {
        table.write(&mut text);
    }
    steadiness(status).write(&mut text);
    if status.disks.iter().any(|disk| disk.degraded == Some(true)) {
        text.push_str(
            "degraded: a device fails; what the cache alone has stays in it, and the daemon's log says whether it is tried \
             again or writes are refused\n",
        );
    }
    text
}

fn requests(status: &FenceStatus) -> Table {
    let per = if status.seconds.is_some() { "/s" } else { "" };
    let heads = ["reads", "writes", "flushes", "MB"].map(|head| format!("{head}{per}"));
    let [reads, writes, flushes, mb] = heads.each_ref().map(String::as_str);
    let mut table = Table::new(["disk", reads, writes, flushes, mb, "errors", "waiting", "hits", "cache"]);
    let rate = |count: f64| match status.seconds {
        Some(seconds) if seconds > 0.0 => format!("{:.1}", count / seconds),
        _ => format!("{count}"),
    };
    for disk in &status.disks {
        let cache = match disk.degraded {
            None => "-",
            Some(false) => "ok",
            Some(true) => "degraded",
        };
        table.rows.push(vec![
            name(disk),
            rate(disk.reads),
            rate(disk.writes),
            rate(disk.flushes),
            megabytes(status, disk.bytes),
            disk.errors.to_string(),
            disk.under_way.to_string(),
            percent(disk.hit_ratio),
            cache.to_owned(),
        ]);
    }
    table
}

/// Of disks that have written past their cache.
fn bypassed(status: &FenceStatus) -> Table {
    let mut table = Table::new(["past the cache", if status.seconds.is_some() { "MB/s" } else { "MB" }]);
    for disk in status.disks.iter().filter(|disk| disk.bypassed_bytes > 0.0) {
        table.rows.push(vec![name(disk), megabytes(status, disk.bypassed_bytes)]);
    }
    table
}

/// Means hide what few requests wait for.
fn response_times(status: &FenceStatus) -> Table {
    let mut table =
        Table::new(["response times", "read ms", "p50", "p99", "write ms", "p50", "p99", "percentiles of"]);
    for disk in &status.disks {
        let figures = [disk.read_ms, disk.read_p50_ms, disk.read_p99_ms];
        let figures = figures.into_iter().chain([disk.write_ms, disk.write_p50_ms, disk.write_p99_ms]);
        let mut row = vec![name(disk)];
        row.extend(figures.map(|ms| some(ms, 3)));
        row.push(match disk.quantiles_over {
            OfWindow::All => "all".to_owned(),
            OfWindow::Minute => "the last minute".to_owned(),
        });
        table.rows.push(row);
    }
    table
}

fn slots(status: &FenceStatus) -> Table {
    let mut table = Table::new([
        "slots",
        "begun",
        "used",
        "credits",
        "credit ms",
        "overruns",
        "overrun ms",
        "balance ms",
    ]);
    for (disk, slots) in each(status, |disk| disk.slots.as_ref()) {
        table.rows.push(vec![
            name(disk),
            slots.slots.to_string(),
            percent((slots.slots > 0.0).then(|| slots.used / slots.slots)),
            slots.credits.to_string(),
            format!("{:.3}", slots.credit_ms),
            slots.overruns.to_string(),
            format!("{:.3}", slots.overrun_ms),
            format!("{:.3}", slots.balance_ms),
        ]);
    }
    table
}

fn predictions(status: &FenceStatus) -> Table {
    let mut table = Table::new([
        "predictions",
        "slow batches",
        "longer ms",
        "missed by ms",
        "fast batches",
        "longer ms",
        "missed by ms",
    ]);
    let three =
        |of: &PredictionStatus| [of.batches.to_string(), some(of.error_ms, 3), some(of.absolute_error_ms, 3)];
    for (disk, slots) in each(status, |disk| disk.slots.as_ref()) {
        let mut row = vec![name(disk)];
        row.extend(three(&slots.slow).into_iter().chain(three(&slots.fast)));
        table.rows.push(row);
    }
    table
}

fn tokens(status: &FenceStatus) -> Table {
    let mut table = Table::new(["tokens", "I/Os ms", "bytes ms"]);
    for (disk, tokens) in each(status, |disk| disk.tokens.as_ref()) {
        table.rows.push(vec![name(disk), some(tokens.ios_ms, 3), some(tokens.bytes_ms, 3)]);
    }
    table
}

fn paced(status: &FenceStatus) -> Table {
    let mut table = Table::new(["paced", "I/Os", "held ms", "late", "late ms"]);
    for (disk, paced) in each(status, |disk| disk.paced.as_ref()) {
        table.rows.push(vec![
            name(disk),
            paced.ios.to_string(),
            format!("{:.3}", paced.held_ms),
            paced.late.to_string(),
            format!("{:.3}", paced.late_ms),
        ]);
    }
    table
}

fn steadiness(status: &FenceStatus) -> Table {
    let mut table =
        Table::new(["steadiness", "of", "over", "seconds", "variation", "spread", "deviation from alone"]);
    for disk in &status.disks {
        for SteadinessStatus { of, over, intervals, variation, spread, deviation } in &disk.steadiness {
            table.rows.push(vec![
                name(disk),
                of.clone(),
                over.name().to_owned(),
                intervals.to_string(),
                percent(*variation),
                percent(*spread),
                percent(*deviation),
            ]);
        }
    }
    table
}

fn each<'a, T: 'a>(
    status: &'a FenceStatus,
    pick: impl Fn(&'a DiskStatus) -> Option<&'a T> + 'a,
) -> impl Iterator<Item = (&'a DiskStatus, &'a T)> {
    status.disks.iter().filter_map(move |disk| Some((disk, pick(disk)?)))
}

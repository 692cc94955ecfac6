//! The results of a load for people, at most 80 columns wide.

use std::io::{self, Write};

use virtbench_record::{DirectionStats, HostUse, InFlightAtEnd, LoadOutcome};
use virtbench_units::{LatencySummary, format_about_bytes, format_latency_ns};

use super::{check, describe};
use crate::text_table::{TextTable, left, right, wrapped};

/// Writes the table.
pub fn write(out: &mut impl Write, outcome: &LoadOutcome, host: &HostUse) -> io::Result<()> {
    for line in describe::lines(outcome) {
        writeln!(out, "{line}")?;
    }
    writeln!(out)?;
    sides(out, outcome)?;
    lines_of_the_mix(out, outcome)?;
    extras(out, outcome)?;
    if let Some(in_flight) = &outcome.in_flight_at_end {
        in_flight_at_end(out, in_flight)?;
    }
    writeln!(out, "{:<22}{:>14}", "errors", outcome.errors)?;
    host_use(out, outcome, host)?;
    for note in &outcome.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

/// Reads and writes beside each other.
fn sides(out: &mut impl Write, outcome: &LoadOutcome) -> io::Result<()> {
    let mut table = TextTable::new(0, &[left(22), right(14), right(14), right(14)]);
    table.row(["", "total", "read", "write"]);
    let sides = [&outcome.total, &outcome.read, &outcome.write];
    let mut row = |name: &str, cell: &dyn Fn(&DirectionStats) -> Option<String>| {
        let [total, read, write] = sides.map(|side| cell(side).unwrap_or_else(|| "-".into()));
        table.row([name.to_owned(), total, read, write]);
    };
    row("operations", &|side| Some(side.operations.to_string()));
    row("IOPS", &|side| Some(format!("{:.0}", side.iops)));
    row("bandwidth", &|side| Some(bandwidth(side)));
    for (name, column) in LATENCIES {
        row(name, &|side| side.latency_ns.and_then(|latency| column(&latency)).map(format_latency_ns));
    }
    writeln!(out, "{table}")
}

/// A figure of a latency distribution, in nanoseconds.
type LatencyColumn = fn(&LatencySummary) -> Option<f64>;

/// The rows of latencies.
const LATENCIES: [(&str, LatencyColumn); 10] = [
    ("latency mean", |latency| Some(latency.mean)),
    ("  standard deviation", |latency| Some(latency.stddev)),
    ("  min", |latency| Some(latency.min as f64)),
    ("  p50", |latency| Some(latency.p50 as f64)),
    ("  p90", |latency| Some(latency.p90 as f64)),
    ("  p95", |latency| Some(latency.p95 as f64)),
    ("  p99", |latency| Some(latency.p99 as f64)),
    ("  p99.9", |latency| Some(latency.p99_9 as f64)),
    ("  p99.99", |latency| latency.p99_99.map(|ns| ns as f64)),
    ("  max", |latency| Some(latency.max as f64)),
];

fn bandwidth(side: &DirectionStats) -> String {
    format!("{}/s", format_about_bytes(side.bytes_per_second))
}

/// Each line of a mix for itself.
fn lines_of_the_mix(out: &mut impl Write, outcome: &LoadOutcome) -> io::Result<()> {
    if outcome.lines.is_empty() {
        return Ok(());
    }
    let mut table = TextTable::new(0, &[wrapped(32), right(9), right(13), right(13), right(13)]);
    table.row(["line of the mix", "IOPS", "bandwidth", "mean", "p99"]);
    for (line, stats) in outcome.spec.access.lines.iter().zip(&outcome.lines) {
        let latency = |of: fn(&LatencySummary) -> f64| {
            stats.latency_ns.as_ref().map_or_else(|| "-".into(), |latency| format_latency_ns(of(latency)))
        };
        table.row([
            describe::access_line(line),
            format!("{:.0}", stats.iops),
            bandwidth(stats),
            latency(|latency| latency.mean),
            latency(|latency| latency.p99 as f64),
        ]);
    }
    writeln!(out, "{table}")
}

fn in_flight_at_end(out: &mut impl Write, found: &InFlightAtEnd) -> io::Result<()> {
    write!(out, "{:<22}{:>14}", "in flight at the end", found.operations)?;
    if let Some(waited) = found.waited_ns {
        let [half, most] = [waited.p50, waited.max].map(|ns| format_latency_ns(ns as f64));
        let failed = if found.failed > 0 { format!("; {} failed", found.failed) } else { String::new() };
        write!(out, " (waited p50 {half}, max {most}{failed})")?;
    }
    writeln!(out)
}

fn host_use(out: &mut impl Write, outcome: &LoadOutcome, host: &HostUse) -> io::Result<()> {
    writeln!(
        out,
        "{:<22}{:>14} (sum over {} processors)",
        "host CPU (%)",
        format!("{:.1}", host.cpu_percent),
        host.processors
    )?;
    if let Some(others) = host.others_percent {
        writeln!(out, "{:<22}{:>14}", "  of other programs", format!("{others:.1}"))?;
    }
    for (name, rate) in
        [("IOPS per %CPU", outcome.total.iops), ("KB/s per %CPU", outcome.total.bytes_per_second / 1e3)]
    {
        let cell = host.per_cpu_percent(rate).map_or_else(|| "-".into(), |value| format!("{value:.0}"));
        writeln!(out, "{name:<22}{cell:>14}")?;
    }
    Ok(())
}

/// What only some loads have: trims, flushes, an open loop, verification.
fn extras(out: &mut impl Write, outcome: &LoadOutcome) -> io::Result<()> {
    for (name, stats) in [("trims", &outcome.trim), ("flushes", &outcome.flush)] {
        let Some(stats) = stats else { continue };
        let latency = stats.latency_ns.map_or_else(String::new, |latency| {
            let [mean, p99] = [latency.mean, latency.p99 as f64].map(format_latency_ns);
            format!(" (latency mean {mean}, p99 {p99})")
        });
        writeln!(out, "{name:<22}{:>14}{latency}", stats.operations)?;
    }
    if let (Some(replay), Some(trace)) = (&outcome.replay, &outcome.spec.trace) {
        let percent = 100.0 * replay.started as f64 / replay.operations.max(1) as f64;
        writeln!(
            out,
            "{:<22}{:>14} of {} operations ({percent:.1} %) at pace {}",
            "replayed", replay.started, replay.operations, trace.pace
        )?;
    }
    if let Some(open) = &outcome.open_loop {
        let word = if open.saturated { " (saturated)" } else { "" };
        writeln!(out, "{:<22}{:>14}{word}", "offered", open.offered)?;
        writeln!(
            out,
            "{:<22}{:>14} (at most {}; {} dropped)",
            "waiting at the end", open.backlog_end, open.backlog_max, open.dropped
        )?;
        if let Some(service) = open.service_ns {
            let [mean, p50, p99, max] =
                [service.mean, service.p50 as f64, service.p99 as f64, service.max as f64]
                    .map(format_latency_ns);
            writeln!(out, "{:<22}{mean:>14} (p50 {p50}, p99 {p99}, max {max})", "service time, mean")?;
        }
    }
    outcome.verify.as_ref().map_or(Ok(()), |found| check::write(out, found))
}

//! The results of a load for people, with what ran, at most 80 columns wide.

use std::io::{self, Write};

use virtbench_record::{DirectionStats, HostUse, InFlightAtEnd, LoadOutcome, TargetKind};
use virtbench_units::{
    LatencySummary, format_about_bytes, format_bytes, format_duration_ns, format_latency_ns,
};
use virtbench_workload::{AccessLine, EngineKind, LoadSpec};

use super::measure;
use crate::text_table::{TextTable, left, right, wrapped};

/// Writes the table.
pub fn write(out: &mut impl Write, outcome: &LoadOutcome, host: &HostUse) -> io::Result<()> {
    for line in lines(outcome) {
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
            access_line(line),
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
    outcome.verify.as_ref().map_or(Ok(()), |found| measure::write(out, found))
}

/// The target with how much of it was used and how, the load, and for how long.
pub fn lines(outcome: &LoadOutcome) -> [String; 3] {
    let spec = &outcome.spec;
    [
        format!("target    {}", target(outcome)),
        format!("load      {}", load(spec)),
        format!("measured  {}", time(outcome)),
    ]
}

/// A line of a mix in short.
pub fn access_line(line: &AccessLine) -> String {
    let mut words = vec![format_bytes(line.size_bytes)];
    words.push(match (line.read_percent, line.trim_percent) {
        (100.0, _) => "read".into(),
        (0.0, 0.0) => "write".into(),
        (0.0, 100.0) => "trim".into(),
        (read, 0.0) => format!("{read} % read"),
        (read, trim) => format!("{read} % read, rest {trim} % trim"),
    });
    words.push(match line.random_percent {
        100.0 => "random".into(),
        0.0 => "sequential".into(),
        random => format!("{random} % random"),
    });
    if line.delay_ns > 0 {
        words.push(format!("{} after {}", format_duration_ns(line.delay_ns), line.burst));
    }
    words.join(", ")
}

fn target(outcome: &LoadOutcome) -> String {
    let facts = &outcome.target;
    let kind = match facts.kind {
        TargetKind::File => "file",
        TargetKind::BlockDevice => "block device",
        TargetKind::Null => "the engine alone",
        TargetKind::Nbd => "NBD",
        TargetKind::VhostUser => "vhost-user",
    };
    let start_bytes = outcome.spec.start_bytes;
    let size = match (outcome.spec.region_bytes, facts.size_bytes) {
        (used, all) if start_bytes > 0 => {
            format!("{} from {} of {}", format_bytes(used), format_bytes(start_bytes), format_bytes(all))
        }
        (used, all) if used < all => format!("the first {} of {}", format_bytes(used), format_bytes(all)),
        (_, all) => format_bytes(all),
    };
    let cache = match (facts.kind.is_local(), facts.direct) {
        (false, _) => "",
        (true, true) => ", direct I/O",
        (true, false) => ", through the page cache",
    };
    format!("{} ({kind}, {size}{cache})", facts.path)
}

fn load(spec: &LoadSpec) -> String {
    let what = match (&spec.trace, spec.access.lines.as_slice()) {
        (Some(trace), _) => format!("trace {} at pace {}", trace.name, trace.pace),
        (None, [line]) => access_line(line),
        (None, lines) => format!("a mix of {} lines", lines.len()),
    };
    let engine = match spec.engine {
        EngineKind::IoUring => "io_uring",
        EngineKind::Psync => "psync",
    };
    let rate = spec.rate.map_or_else(String::new, |rate| format!(", {} a second offered", rate.per_second));
    let workers = if spec.workers == 1 { "1 worker".into() } else { format!("{} workers", spec.workers) };
    format!("{what}; {workers} x queue depth {}{rate}, {engine}", spec.outstanding)
}

fn time(outcome: &LoadOutcome) -> String {
    let ramp = match outcome.spec.ramp_ns {
        0 => "without ramp-up".into(),
        ramp_ns => format!("after {} of ramp-up", format_duration_ns(ramp_ns)),
    };
    format!("{:.3} s {ramp}, seed {}", outcome.elapsed_ns as f64 / 1e9, outcome.seed)
}

#[cfg(test)]
mod tests {
    use virtbench_record::TargetFacts;
    use virtbench_workload::AccessSpec;

    use super::*;

    #[test]
    fn a_reader_learns_what_ran() {
        let line = AccessLine::new(4096, 70.0, 100.0);
        let spec = LoadSpec { seed: 7, ..LoadSpec::new(AccessSpec::single(line), 1 << 20) };
        let mut outcome = LoadOutcome::empty(spec, TargetFacts::null(1 << 30));
        assert_eq!(
            lines(&outcome),
            [
                "target    null (the engine alone, the first 1 MiB of 1 GiB)",
                "load      4 KiB, 70 % read, random; 1 worker x queue depth 16, io_uring",
                "measured  5.000 s after 1s of ramp-up, seed 7",
            ]
        );
        outcome.spec.start_bytes = 32 << 20;
        assert_eq!(lines(&outcome)[0], "target    null (the engine alone, 1 MiB from 32 MiB of 1 GiB)");
        outcome.target = TargetFacts { kind: TargetKind::File, path: "t".into(), ..outcome.target };
        assert!(lines(&outcome)[0].ends_with("through the page cache)"));
        outcome.spec.access.lines.push(AccessLine::new(65536, 0.0, 0.0));
        assert!(lines(&outcome)[1].contains("a mix of 2 lines"));
        assert_eq!(access_line(&outcome.spec.access.lines[1]), "64 KiB, write, sequential");
    }
}

//! The results of a load for people.

use std::io::{self, Write};

use virtbench_record::{DirectionStats, HostUse, LoadOutcome};

/// Writes the table.
pub fn write(out: &mut impl Write, outcome: &LoadOutcome, host: &HostUse) -> io::Result<()> {
    writeln!(out, "{:<22}{:>14}{:>14}{:>14}", "", "total", "read", "write")?;
    let sides = [&outcome.total, &outcome.read, &outcome.write];
    let mut row = |name: &str, cell: &dyn Fn(&DirectionStats) -> Option<String>| {
        write!(out, "{name:<22}")?;
        for side in sides {
            write!(out, "{:>14}", cell(side).unwrap_or_else(|| "-".into()))?;
        }
        writeln!(out)
    };
    row("operations", &|side| Some(side.operations.to_string()))?;
    row("IOPS", &|side| Some(format!("{:.0}", side.iops)))?;
    row("MB/s", &|side| Some(format!("{:.2}", side.bytes_per_second / 1e6)))?;
    let us = |ns: f64| format!("{:.1}", ns / 1e3);
    row("latency mean (us)", &|side| side.latency_ns.map(|l| us(l.mean)))?;
    row("  standard deviation", &|side| side.latency_ns.map(|l| us(l.stddev)))?;
    row("  min", &|side| side.latency_ns.map(|l| us(l.min as f64)))?;
    row("  p50", &|side| side.latency_ns.map(|l| us(l.p50 as f64)))?;
    row("  p90", &|side| side.latency_ns.map(|l| us(l.p90 as f64)))?;
    row("  p95", &|side| side.latency_ns.map(|l| us(l.p95 as f64)))?;
    row("  p99", &|side| side.latency_ns.map(|l| us(l.p99 as f64)))?;
    row("  p99.9", &|side| side.latency_ns.map(|l| us(l.p99_9 as f64)))?;
    row("  max", &|side| side.latency_ns.map(|l| us(l.max as f64)))?;
    extras(out, outcome)?;
    writeln!(out, "{:<22}{:>14}", "errors", outcome.errors)?;
    writeln!(
        out,
        "{:<22}{:>14} (sum over {} processors)",
        "host CPU (%)",
        format!("{:.1}", host.cpu_percent),
        host.processors
    )?;
    for (name, rate) in
        [("IOPS per %CPU", outcome.total.iops), ("KB/s per %CPU", outcome.total.bytes_per_second / 1e3)]
    {
        let cell = host.per_cpu_percent(rate).map_or_else(|| "-".into(), |value| format!("{value:.0}"));
        writeln!(out, "{name:<22}{cell:>14}")?;
    }
    writeln!(out, "measured for {:.3} s, seed {}", outcome.elapsed_ns as f64 / 1e9, outcome.seed)?;
    for note in &outcome.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}

/// What only some loads have: trims, flushes, an open loop, verification.
fn extras(out: &mut impl Write, outcome: &LoadOutcome) -> io::Result<()> {
    for (name, stats) in [("trims", &outcome.trim), ("flushes", &outcome.flush)] {
        let Some(stats) = stats else { continue };
        let latency = stats.latency_ns.map_or_else(String::new, |l| {
            format!(" (latency mean {:.1} us, p99 {:.1} us)", l.mean / 1e3, l.p99 as f64 / 1e3)
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
            let us = |ns: f64| format!("{:.1}", ns / 1e3);
            writeln!(
                out,
                "{:<22}{:>14} (p50 {}, p99 {}, max {})",
                "service mean (us)",
                us(service.mean),
                us(service.p50 as f64),
                us(service.p99 as f64),
                us(service.max as f64)
            )?;
        }
    }
    outcome.verify.as_ref().map_or(Ok(()), |found| super::check::write(out, found))
}

//! What jobs that ran at the same time did together.

use std::io::{self, Write};

use serde::Serialize;
use virtbench_units::decode_histogram;

use super::perform::Done;

/// The figures of several jobs, from the first one's begin to the last one's end.
#[derive(Debug, Serialize)]
pub struct Together {
    jobs: Vec<String>,
    operations: u64,
    iops: f64,
    bytes_per_second: f64,
    /// Latency of all reads and writes in nanoseconds; null where none completed.
    latency_ns: Option<Latency>,
    errors: u64,
    elapsed_ns: u64,
}

/// Latencies of several jobs, in nanoseconds.
#[derive(Debug, Clone, Copy, Serialize)]
struct Latency {
    mean: f64,
    p50: u64,
    p99: u64,
    #[serde(rename = "p99_9")]
    p99_9: u64,
    max: u64,
}

impl Together {
    /// What these jobs did together; nothing for fewer than two.
    pub fn new(done: &[Done]) -> Option<Self> {
        if done.len() < 2 {
            return None;
        }
        let outcomes = || done.iter().map(|job| job.repetitions.median().0);
        let begin_ns = done.iter().map(|job| job.started_unix_ns).min()?;
        let end_ns = done
            .iter()
            .map(|job| job.started_unix_ns.saturating_add(job.repetitions.median().0.elapsed_ns))
            .max()?;
        let elapsed_ns = end_ns.saturating_sub(begin_ns).max(1);
        let operations = outcomes().map(|outcome| outcome.total.operations).sum::<u64>();
        let bytes = outcomes().map(|outcome| outcome.total.bytes).sum::<u64>();
        let seconds = elapsed_ns as f64 / 1e9;
        Some(Self {
            jobs: done.iter().filter_map(|job| job.name.clone()).collect(),
            operations,
            iops: operations as f64 / seconds,
            bytes_per_second: bytes as f64 / seconds,
            latency_ns: latency(done),
            errors: outcomes().map(|outcome| outcome.errors).sum(),
            elapsed_ns,
        })
    }
}

fn latency(done: &[Done]) -> Option<Latency> {
    let totals = || done.iter().map(|job| &job.repetitions.median().0.total);
    let mut histograms = totals().filter_map(|total| decode_histogram(total.histogram.as_deref()?).ok());
    let mut all = histograms.next()?;
    for other in histograms {
        // Histograms of one precision always add up.
        all.add(&other).ok()?;
    }
    let operations: u64 = totals().map(|total| total.operations).sum();
    let sums = totals().filter_map(|total| Some(total.latency_ns?.mean * total.operations as f64));
    Some(Latency {
        mean: sums.sum::<f64>() / operations.max(1) as f64,
        p50: all.value_at_quantile(0.5),
        p99: all.value_at_quantile(0.99),
        p99_9: all.value_at_quantile(0.999),
        max: totals().filter_map(|total| Some(total.latency_ns?.max)).max()?,
    })
}

/// Prints what several jobs did together, for people.
pub fn write(all: &Together) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "[together] {} jobs in {:.3} s: {} operations, {:.0} IOPS, {:.2} MB/s, {} errors",
        all.jobs.len(),
        all.elapsed_ns as f64 / 1e9,
        all.operations,
        all.iops,
        all.bytes_per_second / 1e6,
        all.errors
    )?;
    if let Some(latency) = all.latency_ns {
        let us = |ns: f64| ns / 1e3;
        writeln!(
            out,
            "  latency mean {:.1} us, p50 {:.1} us, p99 {:.1} us, max {:.1} us",
            us(latency.mean),
            us(latency.p50 as f64),
            us(latency.p99 as f64),
            us(latency.max as f64)
        )?;
    }
    Ok(())
}

//! What is printed of measured jobs, of those that ran at the same time, and, with `--dry-run`, of what a file asks for.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use virtbench_formats::{Remark, Schedule};
use virtbench_record::{HostUse, LoadOutcome};
use virtbench_units::{decode_histogram, format_bytes, format_duration_ns};
use virtbench_workload::LoadSpec;

use super::measure::Settled;
use super::perform::Done;
use super::phases::phases;
use super::spec::{Job, Plan};
use super::{repetitions, table};
use crate::say::print_json;

/// What `--json` prints of a job.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    job: Option<&'a str>,
    #[serde(flatten)]
    outcome: LoadOutcome,
    host_cpu_percent: f64,
    host_cpu: &'a HostUse,
    iops_per_cpu_percent: Option<f64>,
    kilobytes_per_second_per_cpu_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steady: Option<&'a Settled>,
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    repeated: Option<repetitions::Summary>,
}

/// What `--json` prints for a file of jobs.
#[derive(Serialize)]
struct Reports<'a> {
    jobs: Vec<Report<'a>>,
    /// What jobs that ran at the same time did together.
    #[serde(skip_serializing_if = "<[Together]>::is_empty")]
    together: &'a [Together],
    notes: &'a [String],
    ignored: &'a [Remark],
}

impl<'a> Report<'a> {
    fn new(done: &'a Done) -> Self {
        let (outcome, host) = done.repetitions.median();
        Self {
            job: done.name.as_deref(),
            host_cpu_percent: host.cpu_percent,
            host_cpu: host,
            iops_per_cpu_percent: host.per_cpu_percent(outcome.total.iops),
            kilobytes_per_second_per_cpu_percent: host.per_cpu_percent(outcome.total.bytes_per_second / 1e3),
            steady: done.settled.as_ref(),
            repeated: done.repetitions.summary(),
            outcome: without_histograms(outcome),
        }
    }
}

/// Histograms are for run folders and exports; in JSON for people's scripts they are noise.
fn without_histograms(outcome: &LoadOutcome) -> LoadOutcome {
    let mut outcome = outcome.clone();
    let sides = [&mut outcome.total, &mut outcome.read, &mut outcome.write];
    for stats in sides.into_iter().chain(&mut outcome.trim).chain(&mut outcome.flush) {
        stats.histogram = None;
    }
    if let Some(open_loop) = &mut outcome.open_loop {
        open_loop.service_histogram = None;
    }
    outcome
}

/// Prints one object: of the only job, or, for a file of them, with one for each.
pub fn write_json(from_file: bool, plan: &Plan, done: &[Done], together: &[Together]) -> io::Result<()> {
    match done {
        [only] if !from_file => print_json(&Report::new(only)),
        jobs => {
            let jobs = jobs.iter().map(Report::new).collect();
            print_json(&Reports { jobs, together, notes: &plan.notes, ignored: &plan.ignored })
        }
    }
}

/// Prints a job's results for people.
pub fn write_table(done: &Done) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let (outcome, host) = done.repetitions.median();
    if let Some(name) = &done.name {
        writeln!(out, "[{name}] on {}", outcome.target.path)?;
    }
    table::write(&mut out, outcome, host)?;
    if let Some(settled) = &done.settled {
        writeln!(out, "{settled}")?;
    }
    match done.repetitions.summary() {
        Some(repeated) => write!(out, "{repeated}"),
        None => Ok(()),
    }
}

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

/// What `--json` prints.
#[derive(Serialize)]
struct Printed<'a> {
    phases: Vec<Vec<PrintedJob<'a>>>,
    notes: &'a [String],
    ignored: &'a [Remark],
}

#[derive(Serialize)]
struct PrintedJob<'a> {
    job: Option<&'a str>,
    target: String,
    size_bytes: Option<u64>,
    schedule: &'a Schedule,
    spec: &'a LoadSpec,
}

/// Prints the plan.
pub fn print(plan: &Plan, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let phases = phases(plan);
    if json {
        let phases = phases.into_iter().map(|jobs| jobs.into_iter().map(|(_, job)| printed(job)).collect());
        let whole = Printed { phases: phases.collect(), notes: &plan.notes, ignored: &plan.ignored };
        return crate::say::print_json(&whole);
    }
    for (number, jobs) in (1..).zip(phases) {
        writeln!(out, "phase {number} of {} job(s)", jobs.len())?;
        for (_, job) in jobs {
            writeln!(out, "  {}", line(job, plan))?;
        }
    }
    Ok(())
}

fn printed(job: &Job) -> PrintedJob<'_> {
    PrintedJob {
        job: job.name.as_deref(),
        target: job.target.display().to_string(),
        size_bytes: job.size_bytes,
        schedule: &job.schedule,
        spec: &job.load,
    }
}

/// A job on a line: where, how much at once, what ends it.
fn line(job: &Job, plan: &Plan) -> String {
    let load = &job.load;
    let mut text = format!(
        "[{}] on {}: {} worker(s) x {} outstanding, blocks of up to {}",
        job.name.as_deref().unwrap_or("load"),
        job.target.display(),
        load.workers,
        load.outstanding,
        format_bytes(load.access.longest_bytes())
    );
    let mut add = |part: String| {
        let _ = write!(text, ", {part}");
    };
    let start = format_bytes(load.start_bytes);
    match job.size_bytes {
        Some(size_bytes) => add(format!("{} from {start}", format_bytes(size_bytes))),
        None if load.start_bytes > 0 => add(format!("all from {start} on")),
        None => {}
    }
    if let Some(rate) = load.rate {
        add(format!("{}/s", rate.per_second));
    }
    match load.amount {
        None => add(format!("for {}", format_duration_ns(load.time_ns))),
        Some(amount) => {
            amount.passes.into_iter().for_each(|passes| add(format!("until {passes} pass(es) are done")));
            amount.bytes.into_iter().for_each(|bytes| add(format!("until {} are done", format_bytes(bytes))));
            amount.operations.into_iter().for_each(|count| add(format!("until {count} operations are done")));
            add(format!("at most {}", format_duration_ns(load.time_ns)));
        }
    }
    let Schedule { delay_ns, after, steady, flow, ends, .. } = &job.schedule;
    if *delay_ns > 0 {
        add(format!("starts {} later", format_duration_ns(*delay_ns)));
    }
    for index in after {
        let name = plan.jobs.get(*index).and_then(|job| job.name.as_deref()).unwrap_or("another job");
        add(format!("after {name}"));
    }
    if let Some(flow) = flow {
        add(format!("of weight {} in flow {}", flow.weight, flow.id));
    }
    if steady.is_some() {
        add("ends once steady".into());
    }
    if ends.is_some() {
        add("ends the others with it".into());
    }
    text
}

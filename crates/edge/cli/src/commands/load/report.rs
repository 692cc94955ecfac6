//! What is printed of measured jobs.

use std::io::{self, Write};

use serde::Serialize;
use virtbench_formats::Remark;
use virtbench_record::{HostUse, LoadOutcome};

use super::job::Plan;
use super::perform::Done;
use super::settle::Settled;
use super::together::Together;
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

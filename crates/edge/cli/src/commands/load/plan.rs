//! `--dry-run`: what a file asks for, without running it.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;
use virtbench_formats::{Remark, Schedule};
use virtbench_units::{format_bytes, format_duration_ns};
use virtbench_workload::LoadSpec;

use super::job::{Job, Plan};
use super::phases::phases;

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

//! `virtbench workload`: a classic workload on this machine.

use std::io::{self, Write};
use std::time::Duration;

use serde::Serialize;
use virtbench_engine::Control;
use virtbench_record::{Better, HostUse, Metric, WorkloadOutcome};
use virtbench_workloads::{RunError, Storage, prepare_until};

use crate::args::workload::WorkloadArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt::{OnMeasuring, watched};
use crate::text_table::{TextTable, left, right};
use crate::{interrupt, progress};

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    outcome: &'a WorkloadOutcome,
    idle_percent: f64,
    host_cpu: &'a HostUse,
}

pub fn execute(args: &WorkloadArgs) -> Outcome {
    let spec = &args.workload;
    let place = args.place.clone().map(Storage::Path);
    let mut prepared = prepare_until(spec, place.as_ref(), &interrupt::requested).map_err(refusal)?;
    let run = |control: &Control, on_measuring: OnMeasuring<'_>| prepared.run(control, 0, on_measuring);
    let bar = progress::timer(Some(spec.ramp_ns + spec.expected_ns()), spec.workload.name());
    let tick = Duration::from_millis(100);
    let (outcome, host) = watched(Control::new(1), tick, run, |_, elapsed| progress::tick(&bar, elapsed))?;
    bar.finish_and_clear();
    let mut outcome = outcome.map_err(refusal)?;
    // For run folders; in JSON for people's scripts it is noise.
    outcome.histogram = None;
    let mut out = io::stdout().lock();
    if args.json {
        let report = Report { idle_percent: outcome.idle_percent(), outcome: &outcome, host_cpu: &host };
        virtbench_formats::json::write_pretty(&mut out, &report)?;
        writeln!(out)?;
    } else {
        table(&mut out, &outcome, &host)?;
    }
    verdict(&outcome)
}

fn refusal(error: RunError) -> Failure {
    let kind = match error {
        _ if interrupt::requested() => Kind::Interrupted,
        RunError::Workload(_) | RunError::Misfit(_) => Kind::Usage,
        RunError::Storage(_) => Kind::Target,
        RunError::Resource { .. } => Kind::Environment,
    };
    Failure::new(kind, error)
}

fn table(out: &mut impl Write, outcome: &WorkloadOutcome, host: &HostUse) -> io::Result<()> {
    let mut table = TextTable::new(0, &[left(24), right(16), right(12), right(8), left(0)]);
    table.row(["", "mean", "sd", "sd %", "unit"]);
    outcome.metrics.iter().for_each(|metric| table.row(cells(metric)));
    writeln!(out, "{table}")?;
    if let Some(latency) = outcome.latency_ns {
        let us = |ns: u64| ns as f64 / 1e3;
        writeln!(
            out,
            "latency mean {:.1} us, p50 {:.1}, p99 {:.1}, max {:.1}",
            latency.mean / 1e3,
            us(latency.p50),
            us(latency.p99),
            us(latency.max)
        )?;
    }
    let seconds = outcome.elapsed_ns as f64 / 1e9;
    writeln!(
        out,
        "{} runs in {seconds:.3} s, {} threads, idle {:.1} %, {} errors",
        outcome.runs,
        outcome.threads,
        outcome.idle_percent(),
        outcome.errors
    )?;
    writeln!(out, "host CPU {:.1} % (sum over {} processors)", host.cpu_percent, host.processors)?;
    for (kind, count) in &outcome.error_kinds {
        writeln!(out, "error: {count} x {kind}")?;
    }
    for note in &outcome.notes {
        writeln!(out, "note: {note}")?;
    }
    writeln!(out, "workload {}", outcome.spec)
}

fn cells(metric: &Metric) -> [String; 5] {
    // STREAM counts in millions of bytes.
    let (scale, unit) = if metric.unit == "B/s" { (1e-6, "MB/s") } else { (1.0, metric.unit.as_str()) };
    let (spread, relative) = match metric.stddev {
        Some(stddev) if metric.mean > 0.0 && metric.better != Better::Neither => {
            (format!("{:.1}", stddev * scale), format!("{:.1}", 100.0 * stddev / metric.mean))
        }
        Some(stddev) => (format!("{:.1}", stddev * scale), "-".to_owned()),
        None => ("-".to_owned(), "-".to_owned()),
    };
    [metric.name.clone(), format!("{:.1}", metric.mean * scale), spread, relative, unit.to_owned()]
}

/// Results were printed; the exit code still tells whether to trust them.
fn verdict(outcome: &WorkloadOutcome) -> Outcome {
    if interrupt::requested() {
        return Err(interrupt::failure("the figures cover the time until then"));
    }
    if outcome.errors > 0 {
        let kinds: Vec<String> =
            outcome.error_kinds.iter().map(|(name, count)| format!("{count} x {name}")).collect();
        return Err(Failure::message(Kind::Measured, format!("operations went wrong: {}", kinds.join(", "))));
    }
    if outcome.interrupted {
        let message =
            format!("limit: only {} of {} runs were finished; raise it", outcome.runs, outcome.spec.runs);
        return Err(Failure::message(Kind::Measured, message));
    }
    Ok(())
}

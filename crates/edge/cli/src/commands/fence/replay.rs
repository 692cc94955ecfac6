//! `virtbench fence simulate --trace`: recorded machines on every way of storing.

use std::fs;
use std::io::Write;

use anyhow::Context;
use serde::Serialize;
use virtbench_fence::catalogue::{self, CATALOGUE, Variant};
use virtbench_fence_evaluation::{Compared, Replayed, Replays, Settings, System};
use virtbench_model::{Estimate, OverExperiments, Span};
use virtbench_report::{FenceFigure, FencePage, FenceTable, FenceValue, fence_html};
use virtbench_workload::TraceOp;

use super::evaluate::{calibrated, finished, threads};
use super::evaluated::cell;
use super::{evaluate, evaluated};
use crate::args::fence::SimulateArgs;
use crate::commands::load::options::read_file;
use crate::exit::{Failure, Kind, Outcome};
use crate::progress;
use crate::say::{print_json, tell};

/// What must be known before the figures are used.
const CAUTIONS: [&str; 4] = [
    "Disks are models with data-sheet figures: ratios, not absolute times, compare.",
    "Requests are due when they were recorded. A real application slows down when its disk does, so that a disk out of \
     breath looks worse here.",
    "Caches begin empty and hold half of the blocks that a machine touches on average; flushes and trims cost nothing.",
    "Virtual devices hold finished answers back until they are due, and keep their promise only as long as the devices \
     keep up.",
];

/// Replays on each system and prints what the machines met.
pub fn execute(args: &SimulateArgs, settings: &Settings) -> Outcome {
    let wrong = |error| Failure::new(Kind::Usage, error);
    let mut traces: Vec<Vec<TraceOp>> = Vec::new();
    let reading = progress::counted(args.trace.len(), "reading traces");
    for path in &args.trace {
        let trace = read_file(path)?;
        for note in &trace.notes {
            reading.suspend(|| tell!("virtbench: {}: {note}", path.display()));
        }
        traces.push(trace.ops);
        reading.inc(1);
    }
    reading.finish_and_clear();
    let replays = Replays::new(&traces, args.pace).map_err(wrong)?;
    drop(traces);
    let calibration = progress::during("calibration", || calibrated(settings))?;
    let progress = progress::counted(CATALOGUE.len(), "ways of storing");
    let results = evaluate::in_order(
        &CATALOGUE,
        threads(args.world.jobs),
        || progress.inc(1),
        |variant| replays.measure(&System::listed(variant), settings, &calibration.predictors).map_err(wrong),
    );
    progress.finish_and_clear();
    let names: Vec<String> = args.trace.iter().map(|path| path.display().to_string()).collect();
    let mut rows = Vec::new();
    for (variant, result) in CATALOGUE.into_iter().zip(results) {
        rows.extend(
            finished(result)?.iter().zip(&names).map(|(replayed, trace)| row(variant, trace, replayed)),
        );
    }
    let found = Found { settings, pace: args.pace.to_string(), takeaway: takeaway(&rows), rows };
    if let Some(path) = &args.html {
        fs::write(path, found.page())
            .with_context(|| format!("--html {}: cannot be written", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        print_json(&found)?;
    } else {
        writeln!(out, "{}", found.takeaway)?;
        evaluated::plain(&mut out, &found.table())?;
    }
    Ok(())
}

/// What was found; `--json` prints it.
#[derive(Serialize)]
struct Found<'a> {
    settings: &'a Settings,
    pace: String,
    takeaway: String,
    rows: Vec<Row>,
}

/// One machine on one system.
#[derive(Debug, Serialize)]
struct Row {
    system: &'static str,
    trace: String,
    requests: usize,
    /// Requests a second alone and in company.
    throughput: [Estimate; 2],
    /// Mean response time alone and in company, milliseconds.
    response_ms: [Estimate; 2],
    /// 99 % of response times are at most this, milliseconds.
    p99_ms: [Estimate; 2],
    throughput_deviation: OverExperiments,
    response_deviation: OverExperiments,
}

fn row(variant: &'static Variant, trace: &str, replayed: &Replayed) -> Row {
    let Compared { throughput, response_ms, p99_ms, throughput_deviation, response_deviation, .. } =
        replayed.figures.clone();
    Row {
        system: variant.name,
        trace: trace.to_owned(),
        requests: replayed.requests,
        throughput,
        response_ms,
        p99_ms,
        throughput_deviation,
        response_deviation,
    }
}

/// Which way of storing moves its worst machine least, and what that costs.
fn takeaway(rows: &[Row]) -> String {
    let worst = |system: &str, of: fn(&Row) -> f64| {
        rows.iter().filter(|row| row.system == system).map(of).fold(0.0, f64::max)
    };
    let deviation = |system: &str| worst(system, |row| row.response_deviation.estimate.mean);
    let response = |system: &str| worst(system, |row| row.response_ms[1].mean);
    let least = rows.iter().map(|row| row.system).min_by(|a, b| deviation(a).total_cmp(&deviation(b)));
    least.map_or_else(String::new, |best| {
        format!(
            "In company no machine's response time deviates by more than {:.1} % on {best} (at most {:.1} ms); on a \
             hard disk without a fence it is {:.1} % ({:.1} ms).",
            deviation(best),
            response(best),
            deviation(catalogue::HDD.name),
            response(catalogue::HDD.name)
        )
    })
}

fn ends(span: Span) -> (f64, f64) {
    (span.low, span.high)
}

impl Found<'_> {
    fn table(&self) -> FenceTable {
        let cells = |row: &Row| {
            vec![
                row.system.to_owned(),
                row.trace.clone(),
                row.requests.to_string(),
                cell(&row.throughput_deviation.estimate, "%"),
                cell(&row.response_deviation.estimate, "%"),
                cell(&row.response_ms[0], "ms"),
                cell(&row.response_ms[1], "ms"),
                cell(&row.p99_ms[0], "ms"),
                cell(&row.p99_ms[1], "ms"),
            ]
        };
        FenceTable {
            title: "Recorded machines".to_owned(),
            caption: "What each machine meets alone and with the others. Requests are due when they were recorded, \
                      whatever came of those before; a response time counts from then. Caches hold half of the \
                      blocks that a machine touches on average, and begin empty."
                .to_owned(),
            header: ["system", "trace", "requests", "throughput deviation", "response deviation", "alone", "together", "p99 alone", "p99 together"]
                .map(str::to_owned)
                .into(),
            rows: self.rows.iter().map(cells).collect(),
        }
    }

    fn page(&self) -> String {
        let values = self.rows.iter().flat_map(|row| {
            let ([alone, together], [p99_alone, p99_together]) = (row.response_ms, row.p99_ms);
            let (response, throughput) = (row.response_deviation, row.throughput_deviation);
            [
                ("response deviation", "%", response.estimate, Some(response.range)),
                ("throughput deviation", "%", throughput.estimate, Some(throughput.range)),
                ("response alone", "ms", alone, None),
                ("response together", "ms", together, None),
                ("p99 alone", "ms", p99_alone, None),
                ("p99 together", "ms", p99_together, None),
            ]
            .map(|(metric, unit, value, range)| FenceValue {
                workload: row.trace.clone(),
                system: row.system.to_owned(),
                x: None,
                machine: row.trace.clone(),
                metric: metric.to_owned(),
                unit: unit.to_owned(),
                measured: value.mean,
                interval: value.span().map(ends),
                range: range.map(ends),
                published: None,
                mark: None,
                outside: None,
            })
        });
        fence_html(&FencePage {
            headline: self.takeaway.clone(),
            details: vec![format!(
                "Recorded traces replayed in virtual time on modelled disks: pace {}, seed {}, {} runs of each, every \
                 value with its 95 % interval.",
                self.pace, self.settings.seed, self.settings.replications
            )],
            cautions: CAUTIONS.iter().map(|caution| (*caution).to_owned()).collect(),
            figures: vec![FenceFigure {
                name: "traces".to_owned(),
                title: "Recorded machines on every way of storing".to_owned(),
                axis: None,
                values: values.collect(),
                findings: Vec::new(),
            }],
            tables: vec![self.table()],
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}

//! `virtbench fence simulate`

use std::io::Write;
use std::num::NonZero;
use std::thread::available_parallelism;

use serde::Serialize;
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::experiment::{
    Case, CaseResult, Figure, Machine, Metric, Published, Row, Settings, published,
};

use super::{parallel, settings, table};
use crate::args::fence::SimulateArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::{interrupt, progress};

/// Runs the cases of the figures and prints what came of them.
pub fn execute(args: &SimulateArgs) -> Outcome {
    let settings = settings::settings(args)?;
    let figures = chosen(&args.figure, &Figure::ALL);
    let workloads = chosen(&args.workload, &Personality::ALL);
    let wanted: Vec<(Figure, String, Case)> = figures
        .iter()
        .flat_map(|figure| figure.cases(&workloads).into_iter().map(|(label, case)| (*figure, label, case)))
        .collect();
    if wanted.is_empty() {
        return Err(Failure::message(
            Kind::Usage,
            "no figure that was asked for has a workload that was asked for",
        ));
    }
    let mut cases: Vec<&Case> = Vec::new();
    for (_, _, case) in &wanted {
        if !cases.contains(&case) {
            cases.push(case);
        }
    }
    let results = run(&cases, args.jobs, &settings)?;
    let known = published()?;
    let mut rows = Vec::new();
    for (figure, label, case) in &wanted {
        if let Some(at) = cases.iter().position(|other| *other == case) {
            rows.extend(figure.rows(label, case, &results[at], &known));
        }
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &Report::new(&settings, &rows))?;
        writeln!(out)?;
    } else {
        table::write(&mut out, &rows)?;
    }
    Ok(())
}

fn chosen<T: Copy + PartialEq>(asked: &[T], all: &[T]) -> Vec<T> {
    all.iter().copied().filter(|one| asked.is_empty() || asked.contains(one)).collect()
}

/// Runs every case once.
fn run(cases: &[&Case], jobs: Option<usize>, settings: &Settings) -> Result<Vec<CaseResult>, Failure> {
    let threads = jobs.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get));
    let bar = progress::bar(cases.len() as u64, "experiments");
    bar.tick();
    let results = parallel::in_order(cases, threads, || bar.inc(1), |case| case.run(settings));
    bar.finish_and_clear();
    results
        .into_iter()
        .map(|result| match result {
            None => Err(interrupt::failure("half an evaluation says nothing")),
            Some(result) => result.map_err(|error| Failure::new(Kind::Usage, error)),
        })
        .collect()
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    settings: &'a Settings,
    rows: Vec<RowReport<'a>>,
}

#[derive(Serialize)]
struct RowReport<'a> {
    figure: Figure,
    workload: Personality,
    system: &'a str,
    machine: Machine,
    metric: Metric,
    unit: &'static str,
    measured: f64,
    low: Option<f64>,
    high: Option<f64>,
    samples: usize,
    published: Option<&'a Published>,
    outside_band: Option<f64>,
}

impl<'a> Report<'a> {
    fn new(settings: &'a Settings, rows: &'a [Row]) -> Self {
        let rows = rows
            .iter()
            .map(|row| RowReport {
                figure: row.figure,
                workload: row.workload,
                system: &row.system,
                machine: row.machine,
                metric: row.metric,
                unit: row.metric.unit(),
                measured: row.measured.mean,
                low: row.measured.span().map(|span| span.low),
                high: row.measured.span().map(|span| span.high),
                samples: row.measured.samples,
                published: row.published.as_ref(),
                outside_band: row.outside(),
            })
            .collect();
        Self { settings, rows }
    }
}

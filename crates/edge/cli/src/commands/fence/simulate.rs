//! `virtbench fence simulate`

use std::io::Write;
use std::num::NonZero;
use std::thread::available_parallelism;

use serde::Serialize;
use virtbench_fence::predict::Predictors;
use virtbench_fence_sim::calibrate::{Calibration, Errors, calibrate};
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::experiment::{
    Bar, Case, CaseResult, Figure, Finding, Machine, Metric, Published, Row, Settings, findings, published,
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
    let bars: Vec<Bar> = figures
        .iter()
        .flat_map(|figure| figure.bars(&workloads))
        .filter(|bar| bar.case.system.exists())
        .collect();
    if bars.is_empty() {
        return Err(Failure::message(
            Kind::Usage,
            "no figure that was asked for shows a workload that was asked for: 4b shows fileserver, 5 mailserver",
        ));
    }
    let calibration = calibrate(&settings.hdd, &settings.ssd, settings.calibration_bytes, settings.seed)
        .map_err(|error| Failure::new(Kind::Usage, error))?;
    let results = run(&bars, args.jobs, &settings, &calibration.predictors)?;
    let known = published()?;
    let rows: Vec<Row> =
        bars.iter().zip(&results).flat_map(|(bar, result)| bar.rows(result, &known)).collect();
    let findings = findings(&rows);
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &Report::new(&settings, &calibration, &rows, &findings))?;
        writeln!(out)?;
    } else {
        table::write(&mut out, &calibration, &rows, &findings)?;
    }
    Ok(())
}

fn chosen<T: Copy + PartialEq>(asked: &[T], all: &[T]) -> Vec<T> {
    all.iter().copied().filter(|one| asked.is_empty() || asked.contains(one)).collect()
}

/// Runs every case once, those that figures share too; gives each bar its result.
fn run(
    bars: &[Bar],
    jobs: Option<usize>,
    settings: &Settings,
    predictors: &Predictors,
) -> Result<Vec<CaseResult>, Failure> {
    let mut cases: Vec<&Case> = Vec::new();
    let of_bar: Vec<usize> = bars
        .iter()
        .map(|bar| {
            cases.iter().position(|case| **case == bar.case).unwrap_or_else(|| {
                cases.push(&bar.case);
                cases.len() - 1
            })
        })
        .collect();
    let threads = jobs.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get));
    let progress = progress::bar(cases.len() as u64, "experiments");
    progress.tick();
    let results =
        parallel::in_order(&cases, threads, || progress.inc(1), |case| case.run(settings, predictors));
    progress.finish_and_clear();
    let results: Vec<CaseResult> = results
        .into_iter()
        .map(|result| match result {
            None => Err(interrupt::failure("half an evaluation says nothing")),
            Some(result) => result.map_err(|error| Failure::new(Kind::Usage, error)),
        })
        .collect::<Result<_, _>>()?;
    Ok(of_bar.into_iter().map(|case| results[case].clone()).collect())
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    settings: &'a Settings,
    calibration: [ErrorsReport<'a>; 2],
    rows: Vec<RowReport<'a>>,
    findings: &'a [Finding],
}

/// Prediction errors on held-out batches, predicted less measured.
#[derive(Serialize)]
struct ErrorsReport<'a> {
    device: &'static str,
    #[serde(flatten)]
    errors: &'a Errors,
}

#[derive(Serialize)]
struct RowReport<'a> {
    figure: Figure,
    workload: Personality,
    system: &'a str,
    x: Option<f64>,
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
    fn new(
        settings: &'a Settings,
        calibration: &'a Calibration,
        rows: &'a [Row],
        findings: &'a [Finding],
    ) -> Self {
        let rows = rows
            .iter()
            .map(|row| RowReport {
                figure: row.figure,
                workload: row.workload,
                system: &row.system,
                x: row.x,
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
        let slow = ErrorsReport { device: "hdd", errors: &calibration.slow };
        let fast = ErrorsReport { device: "ssd", errors: &calibration.fast };
        Self { settings, calibration: [slow, fast], rows, findings }
    }
}

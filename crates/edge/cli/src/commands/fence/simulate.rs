//! `virtbench fence simulate`

use std::fs;
use std::io::Write;
use std::num::NonZero;
use std::thread::available_parallelism;

use anyhow::Context;
use serde::Serialize;
use virtbench_fence_sim::calibrate::{Calibration, Errors, calibrate};
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::experiment::{
    Bar, Case, CaseResult, Figure, Finding, Guard, Machine, Metric, Published, Row, Settings, findings,
    published,
};

use super::beyond::{self, GuardRow};
use super::explain::{self, Explanation};
use super::{page, parallel, settings, table};
use crate::args::fence::SimulateArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::{interrupt, progress};

/// Runs the cases of the figures and prints what came of them.
pub fn execute(args: &SimulateArgs) -> Outcome {
    let settings = settings::settings(&args.world)?;
    let figures = chosen(&args.figure, &Figure::ALL);
    let workloads = chosen(&args.workload, &Personality::ALL);
    let bars: Vec<Bar> = figures.iter().flat_map(|figure| figure.bars(&workloads)).collect();
    if bars.is_empty() {
        return Err(Failure::message(
            Kind::Usage,
            "no figure that was asked for shows a workload that was asked for: 4b shows fileserver, 5 mailserver",
        ));
    }
    let calibration = calibrated(&settings)?;
    let changes = explain::changes(&settings, &figures, &workloads);
    let work: Vec<Work> = bars
        .iter()
        .map(|bar| Work { case: &bar.case, settings: &settings })
        .chain(changes.iter().map(|change| Work { case: &change.bar.case, settings: &change.settings }))
        .collect();
    let results = run(&work, args.world.jobs)?;
    let guards = guards(&beyond::asked(&figures, &workloads), &settings, args.world.jobs)?;
    let known = published()?;
    let rows: Vec<Row> =
        bars.iter().zip(&results).flat_map(|(bar, result)| bar.rows(result, &known)).collect();
    let findings = findings(&rows);
    let explanations: Vec<Explanation> = changes
        .iter()
        .zip(&results[bars.len()..])
        .filter_map(|(change, result)| change.explain(result))
        .collect();
    if let Some(path) = &args.html {
        let html = page::html(&settings, &calibration, &rows, &findings, &explanations, &guards);
        fs::write(path, html).with_context(|| format!("--html {}: cannot be written", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(
            &mut out,
            &Report::new(&settings, &calibration, &rows, &findings, &explanations, &guards),
        )?;
        writeln!(out)?;
    } else {
        table::write(&mut out, &calibration, &rows, &findings, &explanations, &guards)?;
    }
    Ok(())
}

fn chosen<T: Copy + PartialEq>(asked: &[T], all: &[T]) -> Vec<T> {
    all.iter().copied().filter(|one| asked.is_empty() || asked.contains(one)).collect()
}

/// A case and the settings it is run with.
#[derive(Clone, Copy, PartialEq)]
struct Work<'a> {
    case: &'a Case,
    settings: &'a Settings,
}

impl Work<'_> {
    /// Calibrates the predictors of these settings and measures.
    fn run(&self) -> Result<CaseResult, Failure> {
        let calibration = calibrated(self.settings)?;
        self.case
            .run(self.settings, &calibration.predictors)
            .map_err(|error| Failure::new(Kind::Usage, error))
    }
}

/// The predictors of these settings.
pub fn calibrated(settings: &Settings) -> Result<Calibration, Failure> {
    calibrate(&settings.hdd, &settings.ssd, settings.calibration_bytes, settings.seed)
        .map_err(|error| Failure::new(Kind::Usage, error))
}

/// Does the experiments with best effort.
fn guards(
    asked: &[(Personality, Guard)],
    settings: &Settings,
    jobs: Option<usize>,
) -> Result<Vec<GuardRow>, Failure> {
    let results = parallel::in_order(asked, threads(jobs), || (), |one| beyond::run(*one, settings));
    results.into_iter().map(finished).collect()
}

pub fn threads(jobs: Option<usize>) -> usize {
    jobs.unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get))
}

pub fn finished<T>(result: Option<Result<T, Failure>>) -> Result<T, Failure> {
    result.unwrap_or_else(|| Err(interrupt::failure("half an evaluation says nothing")))
}

/// Does all work, what figures share only once; gives each piece its result.
fn run(work: &[Work<'_>], jobs: Option<usize>) -> Result<Vec<CaseResult>, Failure> {
    let mut distinct: Vec<Work<'_>> = Vec::new();
    let place: Vec<usize> = work
        .iter()
        .map(|piece| {
            distinct.iter().position(|other| other == piece).unwrap_or_else(|| {
                distinct.push(*piece);
                distinct.len() - 1
            })
        })
        .collect();
    let progress = progress::bar(distinct.len() as u64, "experiments");
    progress.tick();
    let results = parallel::in_order(&distinct, threads(jobs), || progress.inc(1), Work::run);
    progress.finish_and_clear();
    let results: Vec<CaseResult> = results.into_iter().map(finished).collect::<Result<_, _>>()?;
    Ok(place.into_iter().map(|index| results[index].clone()).collect())
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    settings: &'a Settings,
    calibration: [ErrorsReport<'a>; 2],
    rows: Vec<RowReport<'a>>,
    findings: &'a [Finding],
    explanations: &'a [Explanation],
    guards: &'a [GuardRow],
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
        explanations: &'a [Explanation],
        guards: &'a [GuardRow],
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
        Self { settings, calibration: [slow, fast], rows, findings, explanations, guards }
    }
}

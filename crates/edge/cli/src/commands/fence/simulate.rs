//! `virtbench fence simulate`

use std::fs;
use std::io::Write;

use anyhow::Context;
use serde::Serialize;
use virtbench_fence_sim::calibrate::{Calibration, Errors};
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::experiment::{
    Bar, Figure, Finding, Machine, Metric, Published, Row, Settings, findings, published,
};

use super::beyond::{self, GuardRow};
use super::evaluate::{Evaluation, Experiment, calibrated};
use super::explain::{self, Explanation};
use super::reasons::Miss;
use super::{page, reasons, replay, settings, table};
use crate::args::fence::SimulateArgs;
use crate::exit::{Failure, Kind, Outcome};

/// Runs the cases of the figures and prints what came of them.
pub fn execute(args: &SimulateArgs) -> Outcome {
    let settings = settings::settings(&args.world)?;
    if !args.trace.is_empty() {
        return replay::execute(args, &settings);
    }
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
    let asked = beyond::asked(&figures, &workloads);
    let work: Vec<(Experiment, Settings)> = bars
        .iter()
        .map(|bar| (Experiment::Case(bar.case.clone()), settings))
        .chain(changes.iter().map(|change| (Experiment::Case(change.bar.case.clone()), change.settings)))
        .chain(asked.iter().map(|(guard, load)| (Experiment::Guard(*guard, load.clone()), settings)))
        .collect();
    let evaluation = Evaluation::of(&work, args.world.jobs)?;
    let known = published()?;
    let mut rows = Vec::new();
    for bar in &bars {
        rows.extend(bar.rows(evaluation.case(&bar.case, &settings)?, &known));
    }
    let findings = findings(&rows);
    let mut explanations = Vec::new();
    for change in &changes {
        explanations.extend(change.explain(evaluation.case(&change.bar.case, &change.settings)?));
    }
    let misses = reasons::misses(&rows, &findings, &explanations);
    let mut guards = Vec::new();
    for (guard, load) in &asked {
        guards.extend(beyond::row(*guard, load, evaluation.guard(*guard, load, &settings)?));
    }
    if let Some(path) = &args.html {
        let html = page::html(&settings, &calibration, &rows, &findings, &misses, &explanations, &guards);
        fs::write(path, html).with_context(|| format!("--html {}: cannot be written", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        serde_json::to_writer(
            &mut out,
            &Report::new(&settings, &calibration, &rows, &findings, &misses, &explanations, &guards),
        )?;
        writeln!(out)?;
    } else {
        table::write(&mut out, &calibration, &rows, &findings, &misses, &explanations, &guards)?;
    }
    Ok(())
}

fn chosen<T: Copy + PartialEq>(asked: &[T], all: &[T]) -> Vec<T> {
    all.iter().copied().filter(|one| asked.is_empty() || asked.contains(one)).collect()
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    settings: &'a Settings,
    calibration: [ErrorsReport<'a>; 2],
    rows: Vec<RowReport<'a>>,
    findings: &'a [Finding],
    misses: &'a [Miss],
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
        misses: &'a [Miss],
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
        Self { settings, calibration: [slow, fast], rows, findings, misses, explanations, guards }
    }
}

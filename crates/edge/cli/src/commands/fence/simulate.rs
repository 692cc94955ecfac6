//! `virtbench fence simulate`

use std::fs;

use anyhow::Context;
use serde::Serialize;
use virtbench_fence_evaluation::{Bar, Finding, PaperFigure, Published, Row, Settings, findings, published};
use virtbench_fence_sim::calibrate::Errors;
use virtbench_fence_sim::client::Personality;

use super::evaluate::{Evaluation, Experiment, calibrated};
use super::evaluated::{self, Evaluated, GuardRow, Tally};
use super::explain::{self, Change, Explanation, Miss};
use super::{evaluate, plan, replay};
use crate::args::fence::SimulateArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;

/// Runs the cases of the figures and prints what came of them.
pub fn execute(args: &SimulateArgs) -> Outcome {
    if let Some(path) = &args.plan {
        return plan::again(path, args);
    }
    let settings = evaluate::settings(&args.world)?;
    if !args.trace.is_empty() {
        return replay::execute(args, &settings);
    }
    let figures = chosen(&args.figure, &PaperFigure::ALL);
    let workloads = chosen(&args.workload, &Personality::ALL);
    let evaluated = evaluate(settings, &figures, &workloads, args.world.jobs)?;
    if let Some(path) = &args.html {
        fs::write(path, evaluated::html(&evaluated))
            .with_context(|| format!("--html {}: cannot be written", path.display()))?;
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        print_json(&Report::new(&evaluated))?;
    } else {
        evaluated::write(&mut out, &evaluated)?;
    }
    Ok(())
}

fn evaluate(
    settings: Settings,
    figures: &[PaperFigure],
    workloads: &[Personality],
    jobs: Option<usize>,
) -> Result<Evaluated, Failure> {
    let bars: Vec<Bar> = figures.iter().flat_map(|figure| figure.bars(workloads)).collect();
    if bars.is_empty() {
        return Err(Failure::message(
            Kind::Usage,
            "no figure that was asked for shows a workload that was asked for: 4b shows fileserver, 5 mailserver",
        ));
    }
    let asked = evaluated::asked(figures, workloads);
    let cases = bars.iter().flat_map(|bar| [Some(&bar.case), bar.hdd.as_ref()]).flatten();
    let work: Vec<(Experiment, Settings)> = cases
        .map(|case| (Experiment::Case(case.clone()), settings))
        .chain(asked.iter().map(|(guard, load)| (Experiment::Guard(*guard, load.clone()), settings)))
        .collect();
    let evaluation = Evaluation::compute(&work, jobs)?;
    let known = published()?;
    let mut rows = Vec::new();
    let mut missed = Vec::new();
    for bar in &bars {
        let of_bar = evaluation.rows(bar, &settings, &known)?;
        let outside = of_bar.iter().filter(|row| row.outside().is_some_and(|outside| outside != 0.0));
        missed.extend(outside.map(|row| (bar, row.clone())));
        rows.extend(of_bar);
    }
    let findings = findings(&rows);
    let mut misses = explained(&missed, &settings, &known, jobs)?;
    misses.extend(findings.iter().filter_map(explain::sentence));
    let mut guards = Vec::new();
    for (guard, load) in &asked {
        guards.extend(evaluated::row(*guard, load, evaluation.guard(*guard, load, &settings)?));
    }
    let (calibration, tally) = (calibrated(&settings)?, Tally::count(&rows, &findings));
    Ok(Evaluated { settings, calibration, rows, findings, tally, misses, guards })
}

/// Values outside their bands, each read off again with one assumption changed at a time.
fn explained(
    missed: &[(&Bar, Row)],
    settings: &Settings,
    known: &[Published],
    jobs: Option<usize>,
) -> Result<Vec<Miss>, Failure> {
    let changes: Vec<Vec<Change>> = missed.iter().map(|(bar, _)| explain::changes(settings, bar)).collect();
    let cases = |change: &Change| {
        let cases = [Some(&change.bar.case), change.bar.hdd.as_ref()];
        cases.map(|case| case.map(|case| (Experiment::Case(case.clone()), change.settings)))
    };
    let work: Vec<(Experiment, Settings)> = changes.iter().flatten().flat_map(cases).flatten().collect();
    let evaluation = Evaluation::compute(&work, jobs)?;
    let mut misses = Vec::new();
    for ((_, row), changes) in missed.iter().zip(&changes) {
        let Some(published) = &row.published else { continue };
        let mut values = Vec::new();
        for change in changes {
            let again = evaluation.rows(&change.bar, &change.settings, known)?;
            let same = |one: &&Row| one.machine == row.machine && one.metric == row.metric;
            values.extend(again.iter().find(same).map(|one| (change.name.clone(), one.measured.mean)));
        }
        misses.push(explain::value(row, published, &Explanation { values }));
    }
    Ok(misses)
}

fn chosen<T: Copy + PartialEq>(asked: &[T], all: &[T]) -> Vec<T> {
    all.iter().copied().filter(|one| asked.is_empty() || asked.contains(one)).collect()
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    settings: &'a Settings,
    calibration: [ErrorsReport<'a>; 2],
    tally: Tally,
    rows: Vec<RowReport<'a>>,
    findings: &'a [Finding],
    misses: &'a [Miss],
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
    #[serde(flatten)]
    row: &'a Row,
    unit: &'static str,
    outside_band: Option<f64>,
}

impl<'a> Report<'a> {
    fn new(evaluated: &'a Evaluated) -> Self {
        let Evaluated { settings, calibration, rows, findings, tally, misses, guards } = evaluated;
        let row = |row: &'a Row| RowReport { row, unit: row.metric.unit(), outside_band: row.outside() };
        let slow = ErrorsReport { device: "hdd", errors: &calibration.slow };
        let fast = ErrorsReport { device: "ssd", errors: &calibration.fast };
        Self {
            settings,
            calibration: [slow, fast],
            tally: *tally,
            rows: rows.iter().map(row).collect(),
            findings,
            misses,
            guards,
        }
    }
}

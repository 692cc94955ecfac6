//! Everything that came of an evaluation, as text and as the page of the report.

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use virtbench_fence_evaluation::{
    Finding, Guard, GuardResult, Load, PaperFigure, Published, Row, Saturating, Settings, System, Verdict,
    VmResult,
};
use virtbench_fence_sim::calibrate::{Calibration, Errors};
use virtbench_fence_sim::client::Personality;
use virtbench_fence_sim::disk::HddModel;
use virtbench_model::{Estimate, OverExperiments};
use virtbench_report::{FenceFigure, FencePage, FenceTable, FenceValue, fence_html};

use super::explain::{self, Miss};
use crate::text_table::{TextTable, left, right};

/// What pages, tables and JSON are made of.
pub struct Evaluated {
    pub settings: Settings,
    pub calibration: Calibration,
    pub rows: Vec<Row>,
    pub findings: Vec<Finding>,
    pub tally: Tally,
    pub misses: Vec<Miss>,
    pub guards: Vec<GuardRow>,
}

/// Counts of values and sentences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Published values that were measured.
    pub values: usize,
    /// Those of them whose measured mean lies in their band.
    pub values_held: usize,
    /// Sentences about the figures' shapes.
    pub sentences: usize,
    /// Those that hold.
    pub sentences_held: usize,
    /// Those that are neither held nor refuted.
    pub sentences_undecided: usize,
}

impl Tally {
    /// Of these rows and findings.
    pub fn count(rows: &[Row], findings: &[Finding]) -> Self {
        let judged: Vec<f64> = rows.iter().filter_map(Row::outside).collect();
        let sentences = |verdict| findings.iter().filter(|finding| finding.verdict == verdict).count();
        Self {
            values: judged.len(),
            values_held: judged.iter().filter(|outside| **outside == 0.0).count(),
            sentences: findings.len(),
            sentences_held: sentences(Verdict::Held),
            sentences_undecided: sentences(Verdict::Undecided),
        }
    }

    /// As a sentence.
    pub fn sentence(&self) -> String {
        let Self { values, values_held, sentences, sentences_held, sentences_undecided } = self;
        format!(
            "{values_held} of {values} published values lie in their bands; {sentences_held} of {sentences} sentences \
             about shapes hold, {sentences_undecided} are undecided."
        )
    }
}

/// A mean with its interval, in a cell.
pub fn cell(estimate: &Estimate, unit: &str) -> String {
    match estimate.span() {
        Some(span) => format!("{:.1} {unit} ({:.1} to {:.1})", estimate.mean, span.low, span.high),
        None => format!("{:.1} {unit}", estimate.mean),
    }
}

/// One row of the experiment.
#[derive(Debug, Serialize)]
pub struct GuardRow {
    workload: Personality,
    guard: Guard,
    /// Of the predictable machine that is moved most, percent.
    response_deviation: OverExperiments,
    throughput_deviation: OverExperiments,
    /// Mean response time of the low machine without and with best effort, milliseconds.
    low_response_ms: [Estimate; 2],
    /// 99 % of its response times are at most this.
    low_p99_ms: [Estimate; 2],
    /// Accesses a second.
    best_effort: Estimate,
}

/// The experiments that were asked for: part of the figure "own".
pub fn asked(figures: &[PaperFigure], workloads: &[Personality]) -> Vec<(Guard, Load)> {
    if !figures.contains(&PaperFigure::Own) {
        return Vec::new();
    }
    let load = |workload: &Personality| Guard::load(System::VIRTUAL_FENCE, *workload);
    workloads.iter().flat_map(|workload| Guard::ALL.map(|guard| (guard, load(workload)))).collect()
}

/// Reads off what came of one.
pub fn row(guard: Guard, load: &Load, result: &GuardResult) -> Option<GuardRow> {
    let workload = load.site.workload;
    let deviation = |of: fn(&VmResult) -> OverExperiments| {
        let most = |a: &OverExperiments, b: &OverExperiments| a.estimate.mean.total_cmp(&b.estimate.mean);
        result.vms.iter().map(of).max_by(most)
    };
    Some(GuardRow {
        workload,
        guard,
        response_deviation: deviation(|vm| vm.figures.response_deviation)?,
        throughput_deviation: deviation(|vm| vm.figures.throughput_deviation)?,
        low_response_ms: result.vms.first()?.figures.response_ms,
        low_p99_ms: result.vms.first()?.figures.p99_ms,
        best_effort: result.best_effort,
    })
}

/// As a table of the page and of the text.
pub fn table(rows: &[GuardRow]) -> Option<FenceTable> {
    let cells = |row: &GuardRow| {
        vec![
            row.workload.name().to_owned(),
            row.guard.name().to_owned(),
            cell(&row.throughput_deviation.estimate, "%"),
            cell(&row.response_deviation.estimate, "%"),
            cell(&row.low_response_ms[0], "ms"),
            cell(&row.low_response_ms[1], "ms"),
            cell(&row.low_p99_ms[0], "ms"),
            cell(&row.low_p99_ms[1], "ms"),
            cell(&row.best_effort, "/s"),
        ]
    };
    (!rows.is_empty()).then(|| FenceTable {
        title: "Best effort beside predictable machines".to_owned(),
        caption: "Three predictable machines (8, 24 and 24 % of saturation) without and with a fourth that is best \
                  effort and asks for all it can get (16 threads). Deviation is that of the predictable machine that is \
                  moved most, between best-effort load off and on."
            .to_owned(),
        header: [
            "workload",
            "classes",
            "throughput deviation",
            "response deviation",
            "low, load off",
            "low, load on",
            "low p99, load off",
            "low p99, load on",
            "best effort gets",
        ]
        .map(str::to_owned)
        .into(),
        rows: rows.iter().map(cells).collect(),
    })
}

/// Writes how much is as published, the calibration, a table for each figure, and what is found of its shape.
pub fn write(out: &mut impl Write, evaluated: &Evaluated) -> io::Result<()> {
    let Evaluated { calibration, rows, findings, tally, misses, guards, .. } = evaluated;
    writeln!(out, "{}", tally.sentence())?;
    writeln!(out, "\nPredictors calibrated as section 6.3 does; errors on held-out batches")?;
    for (device, errors) in [("HDD", &calibration.slow), ("SSD", &calibration.fast)] {
        write_errors(out, device, errors)?;
    }
    for figure in PaperFigure::ALL {
        let of_figure: Vec<&Row> = rows.iter().filter(|row| row.figure == figure).collect();
        if of_figure.is_empty() {
            continue;
        }
        writeln!(out, "\nFigure {}: {}", figure.name(), figure.title())?;
        writeln!(out, "{}", rows_table(&of_figure))?;
        for finding in findings.iter().filter(|finding| finding.figure == figure) {
            let (workload, verdict) = (finding.workload.name(), finding.verdict.name());
            writeln!(out, "  {workload}: {}: {verdict} ({})", finding.claim, finding.measured)?;
        }
    }
    for table in [self::table(guards), explain::table(misses)].into_iter().flatten() {
        plain(out, &table)?;
    }
    Ok(())
}

fn write_errors(out: &mut impl Write, device: &str, errors: &Errors) -> io::Result<()> {
    let quantiles: Vec<String> = errors.quantiles_ms.iter().map(|ms| short(*ms)).collect();
    writeln!(
        out,
        "  {device}: {:.1} accesses, {} ms a batch; {:.0} % within {} ms; 5, 25, 50, 75, 95 %: {} ms",
        errors.mean_batch,
        short(errors.mean_service_ms),
        errors.within * 100.0,
        errors.limit_ms,
        quantiles.join(", ")
    )
}

fn rows_table(rows: &[&Row]) -> TextTable {
    let words = [left(11), left(21), left(11), left(24)];
    let mut table =
        TextTable::new(2, &[&words[..], &[right(9), right(15), right(15), left(11), left(0)]].concat());
    table.row([
        "workload",
        "system",
        "machine",
        "metric",
        "measured",
        "95 % interval",
        "least, most",
        "published",
        "verdict",
    ]);
    for row in rows {
        table.row(cells(row));
    }
    table
}

fn cells(row: &Row) -> [String; 9] {
    let interval = row
        .measured
        .span()
        .map_or_else(String::new, |span| format!("{} to {}", short(span.low), short(span.high)));
    let system = match (row.x, row.figure.axis()) {
        (Some(x), Some(axis)) => format!("{x} {}", axis.split(',').next().unwrap_or(axis)),
        _ => row.system.clone(),
    };
    [
        row.workload.name().to_owned(),
        system,
        row.machine.name().to_owned(),
        format!("{}, {}", row.metric.name(), row.metric.unit()),
        short(row.measured.mean),
        interval,
        format!("{}, {}", short(row.range.low), short(row.range.high)),
        row.published.as_ref().map_or_else(String::new, Published::brief),
        verdict(row),
    ]
}

fn verdict(row: &Row) -> String {
    match row.outside() {
        None => String::new(),
        Some(0.0) => "held".into(),
        Some(outside) => {
            let unit = if row.metric.unit() == "%" { "points" } else { row.metric.unit() };
            format!("not held, by {} {unit}", short(outside.abs()))
        }
    }
}

/// Three significant digits.
fn short(value: f64) -> String {
    match value.abs() {
        x if x >= 100.0 => format!("{value:.0}"),
        x if x >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// A table of the page as text.
pub fn plain(out: &mut impl Write, table: &FenceTable) -> io::Result<()> {
    let mut text = TextTable::new(2, &vec![left(0); table.header.len()]);
    for row in std::iter::once(&table.header).chain(&table.rows) {
        text.row(row);
    }
    writeln!(out, "\n{}\n{text}", table.title)
}

/// The page as HTML.
pub fn html(evaluated: &Evaluated) -> String {
    let Evaluated { settings, rows, findings, tally, misses, guards, .. } = evaluated;
    let figures = PaperFigure::ALL.into_iter().filter_map(|figure| section(figure, rows, findings)).collect();
    fence_html(&FencePage {
        headline: tally.sentence(),
        details: details(settings),
        cautions: explain::cautions(settings),
        figures,
        tables: [explain::table(misses), table(guards), Some(calibration_table(evaluated))]
            .into_iter()
            .flatten()
            .collect(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

fn details(settings: &Settings) -> Vec<String> {
    let saturating = match settings.saturating {
        Saturating::One => "one machine alone",
        Saturating::All => "all machines at once",
    };
    vec![
        "The evaluation of [VirtualFence 2013] again, on modelled disks in virtual time: each value is the mean of \
         independent runs, with its 95 % interval, beside what the paper's text says of it."
            .to_owned(),
        format!(
            "Seed {}, {} runs of each experiment, at most {} s of virtual time each; hard disk at {} RPM; SSD reads \
             {:.0} us, writes {:.0} us; saturation is that of {saturating}.",
            settings.seed,
            settings.replications,
            settings.measure_s,
            settings.hdd.rpm,
            settings.ssd.read_us,
            settings.ssd.mean_write_us(),
        ),
    ]
}

fn section(figure: PaperFigure, rows: &[Row], findings: &[Finding]) -> Option<FenceFigure> {
    let values: Vec<FenceValue> = rows.iter().filter(|row| row.figure == figure).map(value).collect();
    let of_figure = findings.iter().filter(|finding| finding.figure == figure);
    (!values.is_empty()).then(|| FenceFigure {
        name: figure.name().to_owned(),
        title: figure.title().to_owned(),
        axis: figure.axis().map(str::to_owned),
        values,
        findings: of_figure
            .map(|f| {
                (
                    format!("{}: {}", f.workload.name(), f.claim),
                    f.verdict.name().to_owned(),
                    f.measured.clone(),
                )
            })
            .collect(),
    })
}

fn value(row: &Row) -> FenceValue {
    let published = row.published.as_ref();
    FenceValue {
        workload: row.workload.name().to_owned(),
        system: row.system.clone(),
        x: row.x,
        machine: row.machine.name().to_owned(),
        metric: row.metric.name().to_owned(),
        unit: row.metric.unit().to_owned(),
        measured: row.measured.mean,
        interval: row.measured.span().map(|span| (span.low, span.high)),
        range: Some((row.range.low, row.range.high)),
        published: published.map(|published| (published.brief(), published.quote.clone())),
        mark: published.map(|one| one.published.unwrap_or(one.at_most)),
        outside: row.outside(),
    }
}

fn calibration_table(evaluated: &Evaluated) -> FenceTable {
    let Evaluated { settings, calibration, .. } = evaluated;
    let row = |device: &str, errors: &Errors, paper: &str| {
        let quantiles = errors.quantiles_ms.map(|ms| format!("{ms:.2}"));
        vec![
            device.to_owned(),
            format!("{:.1}", errors.mean_batch),
            format!("{:.1} ms", errors.mean_service_ms),
            format!("{:.0} % within {} ms", errors.within * 100.0, errors.limit_ms),
            quantiles.join(", "),
            paper.to_owned(),
        ]
    };
    FenceTable {
        title: "Predictors".to_owned(),
        caption: format!(
            "Calibrated as section 6.3 does, on random batches; errors are predicted less measured, on batches that were \
             held out. Rotation is uniform and independent here: over {:.0} accesses it alone has a standard deviation of \
             {:.0} ms, which no predictor knows.",
            calibration.slow.mean_batch,
            rotation_ms(&settings.hdd, calibration.slow.mean_batch)
        ),
        header: [
            "device",
            "accesses a batch",
            "a batch",
            "predicted",
            "errors at 5, 25, 50, 75, 95 %, ms",
            "paper",
        ]
        .map(str::to_owned)
        .into(),
        rows: vec![
            row("HDD", &calibration.slow, "50 accesses, 336 ms, over 70 % within 5 ms"),
            row("SSD", &calibration.fast, "49 accesses, 19.4 ms, over 83 % within 0.25 ms"),
        ],
    }
}

/// Standard deviation of so many rotational delays, each uniform over a revolution, milliseconds.
fn rotation_ms(hdd: &HddModel, accesses: f64) -> f64 {
    (accesses / 12.0).sqrt() * hdd.revolution_ms()
}

#[cfg(test)]
mod tests {
    use virtbench_model::Span;

    use super::*;

    #[test]
    fn best_effort_s_neighbours_have_their_99th_percentile_without_and_with_it() {
        let value = |mean: f64| Estimate { mean, samples: 1, interval: None };
        let deviation =
            |mean| OverExperiments { estimate: value(mean), range: Span { low: mean, high: mean } };
        let row = GuardRow {
            workload: Personality::Webserver,
            guard: Guard::ALL[0],
            response_deviation: deviation(1.0),
            throughput_deviation: deviation(2.0),
            low_response_ms: [value(3.0), value(4.0)],
            low_p99_ms: [value(50.0), value(60.0)],
            best_effort: value(7.0),
        };
        let table = table(&[row]).unwrap();
        let cell = |head: &str| {
            let at = table.header.iter().position(|one| one == head).unwrap_or_else(|| panic!("{head}"));
            table.rows[0][at].clone()
        };
        assert!(cell("low p99, load off").starts_with("50"), "{:?}", table.rows);
        assert!(cell("low p99, load on").starts_with("60"), "{:?}", table.rows);
        assert!(cell("low, load on").starts_with('4'), "{:?}", table.rows);
    }
}

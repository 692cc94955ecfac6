//! The evaluation as the page of the report.

use virtbench_fence_sim::calibrate::Calibration;
use virtbench_fence_sim::experiment::{Figure, Finding, Row, Saturating, Settings};
use virtbench_report::{FenceFigure, FencePage, FenceTable, FenceValue, fence_html};

use super::beyond::{self, GuardRow};
use super::explain::{self, Explanation};
use super::reasons::{self, Miss};

/// The page as HTML.
pub fn html(
    settings: &Settings,
    calibration: &Calibration,
    rows: &[Row],
    findings: &[Finding],
    misses: &[Miss],
    explanations: &[Explanation],
    guards: &[GuardRow],
) -> String {
    let judged: Vec<f64> = rows.iter().filter_map(Row::outside).collect();
    let held = judged.iter().filter(|outside| **outside == 0.0).count();
    let shapes = findings.iter().filter(|finding| finding.held).count();
    let figures = Figure::ALL.into_iter().filter_map(|figure| section(figure, rows, findings)).collect();
    fence_html(&FencePage {
        headline: format!(
            "{held} of {} published values lie in their bands, and {shapes} of {} sentences about shapes hold.",
            judged.len(),
            findings.len()
        ),
        details: details(settings),
        cautions: explain::CAUTIONS.iter().map(|caution| (*caution).to_owned()).collect(),
        figures,
        tables: [
            reasons::table(misses),
            beyond::table(guards),
            explanation_table(explanations),
            Some(calibration_table(calibration)),
        ]
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
        "Paper 5 (VirtualFence) evaluated again on modelled disks in virtual time: each value is the mean of \
         independent runs, with its 95 % interval, beside what the paper's text says of it."
            .to_owned(),
        format!(
            "Seed {}, {} runs of each experiment, at most {} s of virtual time each; hard disk at {} RPM; SSD reads \
             {} us, writes {} us; saturation is that of {saturating}.",
            settings.seed,
            settings.replications,
            settings.measure_s,
            settings.hdd.rpm,
            settings.ssd.read_us,
            settings.ssd.mean_write_us(),
        ),
    ]
}

fn section(figure: Figure, rows: &[Row], findings: &[Finding]) -> Option<FenceFigure> {
    let values: Vec<FenceValue> = rows.iter().filter(|row| row.figure == figure).map(value).collect();
    let of_figure = findings.iter().filter(|finding| finding.figure == figure);
    (!values.is_empty()).then(|| FenceFigure {
        name: figure.name().to_owned(),
        title: figure.title().to_owned(),
        axis: figure.axis().map(str::to_owned),
        values,
        findings: of_figure
            .map(|f| (format!("{}: {}", f.workload.name(), f.claim), f.held, f.measured.clone()))
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
        published: published.map(|published| (published.brief(), published.quote.clone())),
        mark: published.and_then(|one| one.published.or(one.at_most).or(one.at_least)),
        outside: row.outside(),
    }
}

fn calibration_table(calibration: &Calibration) -> FenceTable {
    let row = |device: &str, errors: &virtbench_fence_sim::calibrate::Errors, paper: &str| {
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
        caption: "Calibrated as section 6.3 does, on random batches; errors are predicted less measured, on batches \
                  that were held out. With rotation uniform and independent, the standard deviation of 50 half turns \
                  alone is 17 ms, so that no predictor brings 70 % of the batches within 5 ms."
            .to_owned(),
        header: ["device", "accesses a batch", "a batch", "predicted", "errors at 5, 25, 50, 75, 95 %, ms", "paper"]
            .map(str::to_owned)
            .into(),
        rows: vec![
            row("HDD", &calibration.slow, "50 accesses, 336 ms, over 70 % within 5 ms"),
            row("SSD", &calibration.fast, "49 accesses, 19.4 ms, over 83 % within 0.25 ms"),
        ],
    }
}

fn explanation_table(explanations: &[Explanation]) -> Option<FenceTable> {
    (!explanations.is_empty()).then(|| FenceTable {
        title: "What the misses hang on".to_owned(),
        caption: "The low-intensity machine again with one assumption changed at a time: deviations of throughput and \
                  response time, and response time alone and in company."
            .to_owned(),
        header: ["what is changed", "workload", "system", "throughput", "response", "alone", "together"]
            .map(str::to_owned)
            .into(),
        rows: explanations.iter().map(Explanation::cells).collect(),
    })
}

//! The evaluation as the page of the report.

use virtbench_fence_evaluation::{Finding, PaperFigure, Row, Saturating, Settings};
use virtbench_fence_sim::calibrate::Errors;
use virtbench_fence_sim::disk::HddModel;
use virtbench_report::{FenceFigure, FencePage, FenceTable, FenceValue, fence_html};

use super::evaluated::Evaluated;
use super::{best_effort, explain, reasons};

/// The page as HTML.
pub fn html(evaluated: &Evaluated) -> String {
    let Evaluated { settings, rows, findings, tally, misses, guards, .. } = evaluated;
    let figures = PaperFigure::ALL.into_iter().filter_map(|figure| section(figure, rows, findings)).collect();
    fence_html(&FencePage {
        headline: tally.sentence(),
        details: details(settings),
        cautions: explain::cautions(settings),
        figures,
        tables: [reasons::table(misses), best_effort::table(guards), Some(calibration_table(evaluated))]
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

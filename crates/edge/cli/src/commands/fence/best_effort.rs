//! What goes beyond the paper and is no figure of one case: best effort beside predictable machines.

use serde::Serialize;
use virtbench_fence_evaluation::{Guard, GuardResult, Load, PaperFigure, System, VmResult};
use virtbench_fence_sim::client::Personality;
use virtbench_model::{Estimate, OverExperiments};
use virtbench_report::FenceTable;

use super::cell::cell;

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

use super::*;
use virtbench_model::{OverExperiments, over_experiments};

fn row_of(figure: PaperFigure, system: &str, x: Option<f64>, experiments: &[f64]) -> Row {
    let OverExperiments { estimate, range } = over_experiments(experiments.iter().copied(), 1).unwrap();
    Row {
        figure,
        workload: Personality::Mailserver,
        system: system.into(),
        x,
        machine: Machine::Low,
        metric: Metric::ResponseDeviation,
        measured: estimate,
        range,
        experiments: experiments.to_vec(),
        published: None,
    }
}

fn verdict(rows: &[Row], claim: &str) -> Verdict {
    let found = findings(rows);
    found
        .iter()
        .find(|finding| finding.claim.starts_with(claim))
        .unwrap_or_else(|| panic!("{found:?}"))
        .verdict
}

/// Means of 14.9 % and 15.1 % that differ by chance are no order.
#[test]
fn an_order_is_judged_by_intervals() {
    let fence = row_of(PaperFigure::Five, "VirtualFence", None, &[10.0, 20.0, 15.0, 14.0, 15.5]);
    let claim = "VirtualFence deviates less than HDD+NWC";
    let hdd = |experiments: &[f64]| row_of(PaperFigure::Five, "HDD+NWC", None, experiments);
    let judged = |experiments: &[f64]| verdict(&[fence.clone(), hdd(experiments)], claim);
    assert_eq!(judged(&[15.0, 15.0, 14.0, 16.0, 15.5]), Verdict::Undecided);
    assert_eq!(judged(&[13.0, 24.0, 18.5, 17.0, 19.0]), Verdict::Held, "above it in each experiment");
    assert_eq!(judged(&[8.0, 18.5, 12.5, 12.0, 13.0]), Verdict::NotHeld);
}

/// At 5,400 rpm deviation fell most from 20 to 30 ms, which was called a knee at 20.
#[test]
fn a_curve_that_is_steepest_above_20_ms_has_no_knee_there() {
    let curve = |means: [f64; 5]| -> Vec<Row> {
        [10.0, 15.0, 20.0, 30.0, 40.0]
            .into_iter()
            .zip(means)
            .map(|(ms, mean)| {
                row_of(PaperFigure::Eight, "VirtualFence", Some(ms), &[mean - 0.2, mean, mean + 0.2])
            })
            .collect()
    };
    let claim = "10 to 20 ms reduces";
    assert_eq!(verdict(&curve([60.0, 45.0, 30.0, 26.0, 24.0]), claim), Verdict::Held);
    assert_eq!(verdict(&curve([60.0, 55.0, 50.0, 30.0, 28.0]), claim), Verdict::NotHeld);
}

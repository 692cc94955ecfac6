use virtbench_record::{OperationsLoad, Phase};

use super::*;
use crate::operations::synthetic;

#[test]
fn operations_are_summed_up_by_number_of_vms_and_rate() {
    let analysis = analyse_operations(&synthetic::plan(), &synthetic::records());
    let keys: Vec<_> = analysis.steps.iter().map(|step| (step.vms, step.per_minute)).collect();
    assert_eq!(keys, [(10, Some(100.0)), (10, Some(500.0)), (20, Some(100.0)), (20, Some(500.0))]);
    let light = &analysis.steps[0];
    assert_eq!((light.pieces, light.done(), light.not_issued), (2, 200, 2));
    assert_eq!(light.failed(), BTreeMap::from([(FailureKind::Busy, 1)]));
    assert!((light.achieved.unwrap().mean - 100.0).abs() < 1e-9);
    let on = &light.kinds[&OperationKind::PowerOn];
    let median = on.percentiles_ns[0].unwrap();
    assert!((median.mean / 101e6 - 1.0).abs() < 0.01, "the mean of two pieces: {median:?}");
    assert!((on.phases_ns[&Phase::Seen] / on.mean_ns() - 0.5).abs() < 0.01);
    assert_eq!(analysis.sustained_per_minute, None);
}

#[test]
fn growth_with_the_number_of_vms_is_that_at_the_lowest_rate() {
    let growth = analyse_operations(&synthetic::plan(), &synthetic::records()).growth;
    let (on, off) = (growth[&OperationKind::PowerOn], growth[&OperationKind::PowerOff]);
    assert!((on.factor - 3.0).abs() < 0.05 && (on.exponent - 3f64.log2()).abs() < 0.02, "{on:?}");
    assert!((off.factor - 1.0).abs() < 0.02 && on.bend.is_none(), "{off:?}");
}

#[test]
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole numbers of a test")]
fn a_rate_is_searched_from_the_pieces_alone() {
    let limit_ns = 500_000_000;
    let plan = OperationsPlan { load: OperationsLoad::Max { limit_ns }, vms: vec![10], ..synthetic::plan() };
    // 600 a minute at most; latency grows towards that.
    let mut records: Vec<OperationsRecord> = Vec::new();
    let found = loop {
        let (search, piece) = search_rate(&plan, 10, &records).unwrap();
        let Some(probe) = search.next_probe() else { break search.result() };
        assert!(piece < 100, "it comes to an end");
        let (per_minute, done, latency_ms) = match probe {
            crate::saturation::Probe::Closed => (None, 600.0, 2000.0),
            crate::saturation::Probe::Offered { per_second } => {
                let rate = per_second * 60.0;
                let latency = if rate < 600.0 { 60_000.0 / (600.0 - rate) } else { 20_000.0 };
                (Some(rate), rate.min(600.0), latency)
            }
        };
        let numbers = synthetic::numbers(done as u64, (latency_ms * 1e6) as u64, 0);
        let operations = BTreeMap::from([(OperationKind::PowerOn, numbers)]);
        records.push(synthetic::record(10, piece, per_minute, operations));
    };
    // 480 a minute take 500 ms.
    assert!((400.0..=500.0).contains(&(found.rate * 60.0)), "{}", found.rate * 60.0);
    let analysis = analyse_operations(&plan, &records);
    assert_eq!(analysis.sustained_per_minute, Some(found.rate * 60.0));
}

#[test]
fn a_search_ends_above_rates_at_which_a_piece_holds_too_few_operations() {
    let load = OperationsLoad::Max { limit_ns: 1 };
    let plan = OperationsPlan { load, vms: vec![10], piece_ns: 6_000_000_000, ..synthetic::plan() };
    let mut records: Vec<OperationsRecord> = Vec::new();
    loop {
        let (search, piece) = search_rate(&plan, 10, &records).unwrap();
        let Some(probe) = search.next_probe() else { break };
        let per_minute = match probe {
            crate::saturation::Probe::Closed => None,
            crate::saturation::Probe::Offered { per_second } => {
                assert!(per_second * 6.0 > 4.99, "{per_second} operations a second are too few in 6 s");
                Some(per_second * 60.0)
            }
        };
        let operations = BTreeMap::from([(OperationKind::PowerOn, synthetic::numbers(100, 1_000_000, 0))]);
        records.push(synthetic::record(10, piece, per_minute, operations));
    }
    assert!(records.iter().any(|record| record.key.per_minute.is_some()), "rates were tried");
    let analysis = analyse_operations(&plan, &records);
    assert_eq!((analysis.sustained_per_minute, analysis.untold_below_per_minute), (None, Some(50.0)));
}

use virtbench_record::Status;

use super::*;
use crate::operations::synthetic;

/// Tenants do 1,000 I/Os a second, 900 at the light rate, and 500 at the heavy one; everything slows down slowly.
fn records(plan: &OperationsPlan) -> Vec<OperationsRecord> {
    let record = |piece: u32| {
        let mut record = synthetic::record(10, piece, plan.rate(piece), BTreeMap::new());
        let Status::Measured(measured) = &mut record.status else { panic!() };
        let iops = [1000.0, 900.0, 500.0][piece as usize % 3] * (1.0 - 0.001 * f64::from(piece));
        measured.tenants =
            ["a", "b"].map(|name| TenantMeasured { name: name.into(), iops, latency_ns: None }).into();
        record
    };
    (0..12).map(record).collect()
}

#[test]
fn tenants_are_compared_with_the_piece_without_operations_of_their_own_cycle() {
    let plan = OperationsPlan { tenants: vec!["a".into(), "b".into()], vms: vec![10], ..synthetic::plan() };
    assert_eq!([0, 1, 2, 3].map(|piece| plan.rate(piece)), [Some(0.0), Some(100.0), Some(500.0), Some(0.0)]);
    let found = analyse_tenants(&plan, &records(&plan));
    let rates: Vec<_> = found.iter().map(|one| one.per_minute).collect();
    assert_eq!(rates, [Some(100.0), Some(500.0)]);
    let [light, heavy] = [0, 1].map(|index| found[index].iops.unwrap());
    assert!((light.value - 0.9).abs() < 0.01 && (heavy.value - 0.5).abs() < 0.01, "{found:?}");
    assert_eq!((light.pairs, light.excludes_one()), (4, Some(true)));
    assert_eq!(analyse_tenants(&synthetic::plan(), &records(&plan)), []);
}

use virtbench_record::{Provenance, Records, SetRecord, SetRole};
use virtbench_samples::host::host_use;

use super::*;
use crate::papers::tests::{executed_by, judged, verdict};
use crate::together::test_support::{member, provenance, record, set, workload};

/// Three repetitions of one, two and four VMs with a processor each, on two, and what a VM of a repetition does a minute.
fn together(kind: &str, done: impl Fn(usize, usize, u32) -> f64) -> (Provenance, Records) {
    const NUMBERS: [usize; 3] = [1, 2, 4];
    let role = |vms| if vms == 1 { SetRole::Alone } else { SetRole::Together };
    let sets = NUMBERS.map(|vms| set(&vms.to_string(), role(vms), vms, None));
    let mut facts = provenance(2, 1, sets.into());
    if let Plan::Neighbours(plan) = &mut facts.plan {
        plan.workloads = vec![format!("{kind}:threads=1")];
    }
    let of = |vms: usize, repetition: u32| -> SetRecord {
        let members = (1..=vms).map(|vm| member(vm, workload(&[done(vms, vm, repetition)]))).collect();
        record(&vms.to_string(), repetition, 100.0, members)
    };
    let records = NUMBERS.into_iter().flat_map(|vms| (0..3).map(move |repetition| (vms, repetition)));
    (executed_by("uml", facts), Records::Sets(records.map(|(vms, repetition)| of(vms, repetition)).collect()))
}

/// A processor is shared by as many VMs as are on it.
fn shared(vms: usize) -> f64 {
    1000.0 / (vms as f64 / 2.0).max(1.0)
}

#[test]
fn shares_of_processors_are_equal_or_not() {
    let fair = together("cpu", |vms, vm, _| shared(vms) * (1.0 + 0.002 * vm as f64));
    assert_eq!(judged("fair-computing", &[fair]), [("UML".into(), ClaimVerdict::Holds)]);
    let unfair = together("cpu", |vms, vm, _| shared(vms) * (1.0 + 0.05 * vm as f64));
    assert_eq!(verdict("fair-computing", &[unfair]), ClaimVerdict::Fails);
}

#[test]
fn a_sum_fills_the_machine_or_exceeds_it_or_collapses() {
    let id = "computing-fills-the-machine";
    assert_eq!(verdict(id, &[together("cpu", |vms, _, _| shared(vms))]), ClaimVerdict::Holds);
    assert_eq!(
        verdict(id, &[together("cpu", |_, _, _| 1000.0)]),
        ClaimVerdict::Fails,
        "four on two processors"
    );
    let collapses = together("cpu", |vms, _, _| if vms == 4 { 100.0 } else { 1000.0 });
    assert_eq!(verdict(id, &[collapses]), ClaimVerdict::Fails);
}

#[test]
fn memory_is_shared_fairly_while_processors_last_and_its_sum_stays_or_falls() {
    let fair = || together("memory", |vms, vm, _| shared(vms) * if vms == 4 && vm == 1 { 1.3 } else { 1.0 });
    assert_eq!(verdict("fair-memory", &[fair()]), ClaimVerdict::Holds, "four VMs are beyond the processors");
    assert_eq!(verdict("memory-near-its-most", &[fair()]), ClaimVerdict::Holds);
    let unfair = together("memory", |vms, vm, _| if vm == 1 { 900.0 } else { 500.0 / vms as f64 });
    assert_eq!(verdict("fair-memory", &[unfair]), ClaimVerdict::Fails);
    let falls = together("memory", |vms, _, _| 1000.0 / (vms as f64).powi(2));
    assert_eq!(verdict("memory-near-its-most", &[falls]), ClaimVerdict::Fails);
}

#[test]
fn several_move_more_files_than_one_or_not() {
    assert_eq!(
        verdict("more-files-together", &[together("bonnie", |vms, _, _| 1500.0 / vms as f64)]),
        ClaimVerdict::Fails
    );
    let more = together("bonnie", |vms, _, _| if vms == 1 { 1000.0 } else { 2000.0 / vms as f64 });
    assert_eq!(verdict("more-files-together", &[more]), ClaimVerdict::Holds);
}

#[test]
fn a_host_that_is_used_up_by_emulation_decides_nothing() {
    let overloaded = |kind: &str| {
        let (facts, mut records) = together(kind, |vms, vm, _| shared(vms) * vm as f64);
        if let Records::Sets(records) = &mut records {
            records.iter_mut().for_each(|record| record.host = Some(host_use(200.0, 200.0, 0.0)));
        }
        (executed_by("tcg", facts), records)
    };
    let all = ["cpu", "memory", "bonnie"].map(overloaded);
    for id in [
        "fair-computing",
        "fair-memory",
        "memory-near-its-most",
        "more-files-together",
        "files-are-least-fair",
    ] {
        assert_eq!(judged(id, &all), [("TCG".into(), ClaimVerdict::Open)], "{id}");
    }
}

#[test]
fn files_are_least_fair_or_not_and_unknown_where_one_is_missing() {
    // How far repetitions are apart.
    let spread = |kind: &str, share: f64| {
        together(kind, move |vms, _, repetition| shared(vms) * (1.0 + share * f64::from(repetition)))
    };
    let others = || [spread("cpu", 0.005), spread("memory", 0.02)];
    let with = |files: (Provenance, Records)| others().into_iter().chain([files]).collect::<Vec<_>>();
    assert_eq!(verdict("files-are-least-fair", &with(spread("iozone", 0.2))), ClaimVerdict::Holds);
    assert_eq!(verdict("files-are-least-fair", &with(spread("iozone", 0.01))), ClaimVerdict::Fails);
    assert_eq!(judged("files-are-least-fair", &others()), []);
}

//! The sentences a reader takes away, for runs of every kind.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::pages::synthetic;

use insta::assert_snapshot;
use synthetic::{measured_mut, plan, provenance, records, small_plan, takeaway, unavailable};
use virtbench_record::{ClockCheck, CrossingCost, PointRecord, Provenance};

/// Headline, details and cautions, a line each.
fn sentences(provenance: &Provenance, records: &[PointRecord]) -> String {
    let takeaway = takeaway(provenance, records);
    let lines = [vec![takeaway.headline], takeaway.details, takeaway.cautions];
    lines.concat().join("\n")
}

fn small() -> (Provenance, Vec<PointRecord>) {
    let plan = small_plan();
    let records = records(&plan);
    (provenance(plan), records)
}

#[test]
fn a_whole_run_under_tcg() {
    let (provenance, records) = small();
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn under_kvm_nothing_is_said_of_emulation() {
    let (mut provenance, records) = small();
    provenance.guest.as_mut().unwrap().accelerator.name = "kvm".into();
    provenance.host.hypervisor = Some("kvm".into());
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn an_incomplete_run_with_a_point_that_cannot_be_measured() {
    let (provenance, mut records) = small();
    let (last, lost) = (records[107].point, records[0].point);
    records.retain(|record| record.point != last && !(record.point == lost && record.environment == "vm"));
    for repetition in 0..3 {
        records.push(unavailable(lost, "vm", repetition, "the guest stopped answering."));
    }
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn a_single_repetition_proves_no_difference() {
    let plan = plan(&[4096], &[0, 100], &[0, 100], 1);
    let records = records(&plan);
    assert_snapshot!(sentences(&provenance(plan), &records));
}

#[test]
fn a_single_point() {
    let plan = plan(&[4096], &[100], &[0], 3);
    let records = records(&plan);
    assert_snapshot!(sentences(&provenance(plan), &records));
}

#[test]
fn sides_that_are_equal() {
    let (provenance, mut records) = small();
    for pair in records.chunks_mut(2) {
        pair[1].status = pair[0].status.clone();
    }
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn nothing_in_the_vm() {
    let (mut provenance, mut records) = small();
    provenance.guest = None;
    for record in &mut records {
        if record.environment == "vm" {
            *record = unavailable(record.point, "vm", record.repetition, "QEMU is not installed");
        }
    }
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn nothing_at_all() {
    let (provenance, _) = small();
    assert_snapshot!(sentences(&provenance, &[]));
}

#[test]
fn suspect_clocks_errors_interruptions_and_the_page_cache() {
    let (provenance, mut records) = small();
    for index in [1, 7] {
        measured_mut(&mut records[index]).clock =
            Some(ClockCheck { drift_ppm: -30_000.0, uncertainty_ppm: 50.0 });
    }
    measured_mut(&mut records[0]).outcome.errors = 1;
    measured_mut(&mut records[3]).outcome.errors = 12;
    measured_mut(&mut records[9]).outcome.interrupted = true;
    measured_mut(&mut records[2]).outcome.target.direct = false;
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn repetitions_that_moved_nothing_are_counted_where_ratios_leave_them_out() {
    let (provenance, mut records) = small();
    let mut stall = |environment: &str, repetitions: usize| {
        let point = records[0].point;
        let of_side = records.iter_mut().filter(|one| one.point == point && one.environment == environment);
        for record in of_side.take(repetitions) {
            measured_mut(record).outcome.total.bytes_per_second = 0.0;
        }
        sentences(&provenance, &records)
    };
    assert!(!stall("vm", 0).contains("completed"));
    let said = stall("vm", 2);
    assert!(said.contains("No operation completed in the VM in 2 repetitions, at 1 point: ratios"), "{said}");
    let said = stall("native", 1);
    assert!(said.contains("No operation completed natively in 1 repetition, at 1 point: ratios"), "{said}");
}

#[test]
fn two_platforms_beside_native() {
    let mut plan = small_plan();
    let mut records: Vec<PointRecord> = records(&plan);
    let emulated: Vec<PointRecord> =
        records.iter().filter(|record| record.environment == "vm").cloned().collect();
    for record in &mut records {
        if record.environment == "vm" {
            record.environment = "uml".into();
            measured_mut(record).outcome.total.bytes_per_second *= 1.5;
        }
    }
    records.extend(emulated.into_iter().map(|record| PointRecord { environment: "tcg".into(), ..record }));
    plan.environments = ["native", "uml", "tcg"].map(str::to_owned).into();
    let mut provenance = provenance(plan);
    let emulated = provenance.guest.clone().unwrap();
    let direct = provenance.guest.as_mut().unwrap();
    direct.accelerator.name = "uml".into();
    direct.crossing = Some(CrossingCost { system_call_ns: 6_900, page_fault_ns: 20_100 });
    provenance.other_guests.push(emulated);
    provenance.crossing = Some(CrossingCost { system_call_ns: 94, page_fault_ns: 880 });
    assert_snapshot!(sentences(&provenance, &records));
}

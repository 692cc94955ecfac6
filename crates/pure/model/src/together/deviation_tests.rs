use super::super::test_support::{load, member, provenance, record, set};
use super::*;
use virtbench_record::{MemberPlan, MemberStatus, SetPlan};

fn plan() -> Vec<SetPlan> {
    let member = |vm: &str, share: f64| MemberPlan { vm: vm.into(), workload: 0, share_percent: Some(share) };
    let alone = |vm: &str, share| SetPlan {
        name: format!("{vm}-alone"),
        role: SetRole::Alone,
        members: vec![member(vm, share)],
    };
    vec![
        set("saturation", SetRole::Saturation, 1, None),
        alone("vm1", 8.0),
        alone("vm2", 24.0),
        SetPlan {
            name: "together".into(),
            role: SetRole::Together,
            members: vec![member("vm1", 8.0), member("vm2", 24.0)],
        },
    ]
}

#[test]
fn each_vm_and_their_mean_deviate_by_what_was_put_in() {
    let mut records = vec![record("saturation", 0, 50.0, vec![member(1, load(1_000.0, 1))])];
    for repetition in 0..3 {
        let drift = 1.0 + 0.1 * f64::from(repetition);
        records.push(record("vm1-alone", repetition, 50.0, vec![member(1, load(80.0 * drift, 100_000))]));
        records.push(record("vm2-alone", repetition, 50.0, vec![member(2, load(240.0 * drift, 100_000))]));
        records.push(record(
            "together",
            repetition,
            50.0,
            vec![member(1, load(60.0 * drift, 300_000)), member(2, load(216.0 * drift, 150_000))],
        ));
    }
    let analysis = analyse_deviation(&provenance(2, 1, plan()), &records);
    assert_eq!(analysis.saturation[0].unwrap().mean, 1_000.0);
    let [together] = analysis.sets.as_slice() else { panic!("{:?}", analysis.sets) };
    let delta = |vm: usize| together.vms[vm].throughput.unwrap().delta;
    assert!((delta(0).mean - 25.0).abs() < 1e-9 && (delta(1).mean - 10.0).abs() < 1e-9);
    let expected = together.expected_throughput.unwrap();
    assert!((expected.mean - 17.5).abs() < 1e-9, "{expected:?}");
    // What drifts from repetition to repetition hits both, and falls out.
    let span = expected.span().unwrap();
    assert!(span.high - span.low < 1e-6);
    assert!((together.expected_response.unwrap().mean - 125.0).abs() < 0.5);
}

#[test]
fn a_vm_that_failed_has_no_deviation_and_leaves_the_other_its_own() {
    let mut beside = record("together", 0, 50.0, vec![member(1, load(60.0, 1)), member(2, load(1.0, 1))]);
    beside.members[1].status = MemberStatus::Failed { why: "gone".into() };
    let alone = record("vm1-alone", 0, 50.0, vec![member(1, load(80.0, 1))]);
    let analysis = analyse_deviation(&provenance(2, 1, plan()), &[alone, beside]);
    let together = &analysis.sets[0];
    assert_eq!(together.vms[0].throughput.unwrap().delta.mean, 25.0);
    assert_eq!((together.vms[1].throughput, together.expected_throughput), (None, None));
    assert_eq!(together.without_figures, 1);
}

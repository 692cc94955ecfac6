use virtbench_record::{ApplicationFailureDetail, Status};

use super::*;

use virtbench_samples::application as synthetic;

#[test]
fn an_application_is_compared_with_native_alone_and_with_itself_beside_neighbours() {
    let analysis = analyse_application_study(&synthetic::plan(), &synthetic::records());
    let [native, vm] = &analysis.sides[..] else { panic!("{analysis:?}") };
    assert_eq!(native.metrics[0].against_native, None);
    let ratio = vm.metrics[0].against_native.expect("both sides were measured");
    assert!((ratio.value - 0.1).abs() < 1e-9 && ratio.pairs == 3, "{ratio:?}");
    let ratio = vm.metrics[1].against_native.expect("both sides were measured");
    assert!((ratio.value - 10.0).abs() < 1e-9, "a response time goes the other way: {ratio:?}");
    for side in [native, vm] {
        let deviation = side.metrics[0].deviation.expect("it was measured beside others");
        assert!((deviation.estimate.mean - 50.0).abs() < 1e-9, "{deviation:?}");
        assert!((side.metrics[0].against_alone.expect("pairs").value - 0.5).abs() < 1e-9);
    }
    assert!((native.metrics[0].alone.expect("three").mean - 1100.0).abs() < 1e-9);
}

#[test]
fn a_repetition_that_failed_has_no_part_in_a_ratio_and_stays_with_its_side() {
    let mut records = synthetic::records();
    let of_vm = records.iter_mut().find(|record| record.key.side == "vm" && record.key.neighbours == 0);
    of_vm.expect("there is one").status = Status::Failed {
        why: "the client failed".into(),
        detail: ApplicationFailureDetail { output: Some("no".into()) },
    };
    let analysis = analyse_application_study(&synthetic::plan(), &records);
    let vm = &analysis.sides[1];
    let ratio = vm.metrics[0].against_native.expect("two are left");
    assert_eq!((ratio.pairs, ratio.unpaired), (2, 1));
    assert_eq!(vm.failures, ["the client failed"]);
    assert!(analysis.sides[0].failures.is_empty());
}

#[test]
fn sides_are_compared_with_the_native_one_of_as_many_processors() {
    let mut plan = synthetic::plan();
    let mut records = synthetic::records();
    for (name, vm) in [("native-2", false), ("vm-2", true)] {
        plan.sides.push(ApplianceSide { name: name.into(), vm, vcpus: 2, memory_bytes: 1 << 28 });
        for repetition in 0..3 {
            records.push(synthetic::record(name, 0, repetition, if vm { 500.0 } else { 2000.0 }));
        }
    }
    let analysis = analyse_application_study(&plan, &records);
    let ratio = analysis.sides[3].metrics[0].against_native.expect("both sides were measured");
    assert!((ratio.value - 0.25).abs() < 1e-9, "{ratio:?}");
    assert_eq!(analysis.sides[3].metrics[0].deviation, None, "it was not measured beside others");
}

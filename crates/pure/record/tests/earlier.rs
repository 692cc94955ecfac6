//! `run.json` of each study, as version 0.1 recorded it in format 1.

#![allow(clippy::unwrap_used)]

use virtbench_record::{Plan, Provenance, RUN_FORMAT, SetRole, parse_provenance};

fn read(text: &str) -> Provenance {
    let run = parse_provenance(text).unwrap();
    assert_eq!(run.format, RUN_FORMAT);
    assert!(run.command.contains(&run.plan.study().to_owned()), "{:?}", run.command);
    // As it is written when the run is gone on with.
    let now = serde_json::to_string(&run).unwrap();
    assert_eq!(parse_provenance(&now).unwrap(), run);
    run
}

#[test]
fn runs_of_a_grid_are_read_in_format_1() {
    let run = read(include_str!("format-1/native-vs-vm.json"));
    let Plan::NativeVsVm(plan) = &run.plan else { panic!("{run:?}") };
    assert_eq!((plan.environments.join(" "), plan.repetitions, plan.seed), ("native vm".into(), 1, 1));
    assert_eq!((plan.blocks_bytes.as_slice(), plan.time_ns), (&[4096][..], 100_000_000));
    assert!(run.guest.is_some());
    let run = read(include_str!("format-1/adapters.json"));
    let Plan::Adapters(plan) = &run.plan else { panic!("{run:?}") };
    assert_eq!((plan.environments.join(" "), plan.size_bytes), ("virtio-blk nvme".into(), 8 << 20));
    assert_eq!((run.setups.len(), run.idle.len()), (2, 2));
}

#[test]
fn runs_of_several_vms_are_read_in_format_1() {
    let run = read(include_str!("format-1/neighbours.json"));
    let Plan::Neighbours(plan) = &run.plan else { panic!("{run:?}") };
    assert_eq!((plan.sets.len(), plan.repetitions, plan.vcpus), (1, 1, 2));
    let run = read(include_str!("format-1/deviation.json"));
    let Plan::Deviation(plan) = &run.plan else { panic!("{run:?}") };
    assert_eq!((plan.repetitions, plan.seed, plan.size_bytes), (1, 1, 8 << 20));
    assert_eq!((plan.ramp_ns, plan.time_ns), (10_000_000, 200_000_000));
    assert_eq!((plan.sets.len(), plan.sets[0].role), (4, SetRole::Saturation));
}

#[test]
fn runs_of_predictions_are_read_in_format_1() {
    let run = read(include_str!("format-1/predictions.json"));
    let Plan::Predictions(plan) = &run.plan else { panic!("{run:?}") };
    assert_eq!((plan.cases.len(), plan.cases[0].name.as_str()), (1, "true"));
    assert_eq!((plan.trials, plan.size_bytes), (3, 1 << 30));
}

#[test]
fn a_run_that_a_later_version_wrote_is_refused() {
    let text = include_str!("format-1/predictions.json").replace("\"format\": 1", "\"format\": 99");
    let error = parse_provenance(&text).unwrap_err().to_string();
    assert!(error.contains("format 99") && error.contains(&format!("up to {RUN_FORMAT}")), "{error}");
}

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::AtomicBool;

use virtbench_lab::host_facts;
use virtbench_record::SamplesRecord;
use virtbench_runs::{RunFolder, load_run};
use virtbench_samples::samples as synthetic;

use super::*;

/// Copies the run of the number of times that it was called, into the folder behind `--out`.
const PROGRAM: &str = r#"#!/bin/sh
here=$(dirname "$0")
count=$(($(cat "$here/count" 2>/dev/null || echo 0) + 1))
echo "$count" > "$here/count"
while [ "$1" != --out ]; do shift; done
cp -r "$here/run-$count" "$2"
"#;

fn plan() -> PlatformPlan {
    let run = PlatformRun { name: "network".into(), words: vec!["study".into()], place: Vec::new() };
    let domain = PlatformDomain {
        name: "network".into(),
        runs: vec![run],
        takes_ns: 1,
        absolute: false,
        left_out: None,
    };
    PlatformPlan {
        profile: "minute".into(),
        domains: vec![domain],
        repetitions: 1,
        weights: [].into(),
        accelerator: "auto".into(),
        environments: Vec::new(),
        reference: None,
        seed: 1,
    }
}

/// Runs a platform whose studies find these kernels on the host, call by call; what is recorded.
fn records_of(place: &Path, kernels: &[Option<&str>]) -> Vec<SamplesRecord> {
    for (index, kernel) in kernels.iter().enumerate() {
        let path = place.join(format!("run-{}", index + 1));
        let mut provenance = virtbench_samples::grid::described(Plan::Network(synthetic::plan()));
        provenance.version = env!("CARGO_PKG_VERSION").into();
        provenance.host = host_facts(place);
        if let Some(kernel) = kernel {
            provenance.host.kernel = (*kernel).into();
        }
        let mut folder = RunFolder::create(&path, provenance).unwrap();
        synthetic::records().into_iter().for_each(|record| folder.add(record).unwrap());
    }
    let program = place.join("program");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let study = PlatformStudy::new(plan(), program, |_, _| "so much".into());
    let (out, stop) = (place.join("platform"), AtomicBool::new(false));
    let run = &mut Run { out: &out, resume: false, command: Vec::new(), stop: &stop, observer: &mut () };
    let _ = study.run(run).unwrap();
    load_run(&out).unwrap().records
}

#[test]
fn what_was_measured_in_another_configuration_does_not_count_and_is_tried_once_more() {
    let temp = tempfile::tempdir().unwrap();
    let records = records_of(temp.path(), &[Some("9.9"), None]);
    let [void, counted] = records.as_slice() else { panic!("{records:?}") };
    let why = void.failure().unwrap();
    assert!(why.starts_with("it does not count: the host's kernel was "), "{why}");
    assert!(why.contains("and is 9.9 now; what was measured is in "), "{why}");
    assert!(counted.measured().is_some(), "{counted:?}");
    assert!(temp.path().join("platform/network/1-void-1/network/run.json").is_file());
    assert!(temp.path().join("platform/network/1/network/run.json").is_file());
}

#[test]
fn a_configuration_that_stays_another_one_leaves_the_domain_without_a_figure() {
    let temp = tempfile::tempdir().unwrap();
    let records = records_of(temp.path(), &[Some("9.9"), Some("9.8"), None]);
    assert_eq!(records.len(), 2, "{records:?}");
    assert!(records.iter().all(|record| record.failure().is_some()), "{records:?}");
    let found = virtbench_model::platform::score_platform(&plan(), &records);
    assert!(found.score.is_none() && found.domains[0].failures.len() == 2, "{found:?}");
}

use virtbench_engine::Control;
use virtbench_workload::files::FileSpec;
use virtbench_workload::{WorkloadSpec, parse_workload};

use crate::run::prepare;
use crate::runner::Storage;

fn run(text: &str) -> (tempfile::TempDir, virtbench_record::WorkloadOutcome) {
    let spec: WorkloadSpec = parse_workload(text).unwrap();
    let place = tempfile::tempdir().unwrap();
    let mut prepared = prepare(&spec, Some(&Storage::Path(place.path().to_owned()))).unwrap();
    let outcome = prepared.run(&Control::new(1), 0, |_| {}).unwrap();
    (place, outcome)
}

#[test]
fn a_personality_has_a_sample_of_each_figure_for_each_run() {
    let (_place, outcome) = run("fileserver:threads=2,files=50,run=200ms,runs=2");
    assert_eq!((outcome.runs, outcome.errors, outcome.interrupted), (2, 0, false), "{outcome:?}");
    let lead = &outcome.metrics[0];
    assert_eq!(
        (lead.name.as_str(), lead.unit.as_str(), lead.samples.len()),
        ("operations", "operations/s", 2)
    );
    for name in ["throughput", "response", "createfile", "readwholefile p95", "deletefile max"] {
        assert!(outcome.metric(name).is_some_and(|metric| metric.mean > 0.0), "{name}");
    }
    assert!(outcome.operations > 0 && outcome.bytes > 0 && outcome.histogram.is_some());
}

#[test]
fn a_time_cuts_the_last_run_and_keeps_its_rates() {
    let (_place, outcome) = run("webserver:threads=2,files=50,run=1h,time=300ms");
    assert_eq!(outcome.metric("operations").map(|metric| metric.samples.len()), Some(1), "{outcome:?}");
    assert!(!outcome.interrupted);
}

#[test]
fn bonnie_has_figures_as_bonnie_prints_them() {
    let (_place, outcome) = run("bonnie:size=1MiB,files=32,seeks=50,runs=1");
    let unit = |name: &str| outcome.metric(name).map(|metric| metric.unit.clone()).unwrap_or_default();
    assert_eq!(outcome.metrics[0].name, "write-character");
    assert_eq!((unit("write-block").as_str(), unit("seeks").as_str()), ("B/s", "operations/s"));
    assert_eq!((unit("stat-random").as_str(), unit("write-block cpu").as_str()), ("operations/s", "%"));
}

#[test]
fn files_without_a_place_are_refused_with_the_flag() {
    let spec = WorkloadSpec::new(virtbench_workload::Workload::Files(FileSpec::named("bonnie").unwrap()));
    assert!(prepare(&spec, None).unwrap_err().to_string().contains("--dir"));
}

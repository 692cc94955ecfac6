use super::*;
use tempfile::TempDir;
use virtbench_record::{
    ClockFacts, DiskFacts, FORMAT, GridPlan, HostFacts, HostTuning, LoadOutcome, Measured, Plan, PointKey,
    PointStatus, RUN_FORMAT, SetRecord, TargetFacts, TargetKind,
};
use virtbench_samples::host::host_use;
use virtbench_units::{LatencyRecorder, decode_histogram};

use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

fn provenance() -> Provenance {
    described(Plan::NativeVsVm(plan()))
}

fn plan() -> GridPlan {
    GridPlan {
        grid: "test".into(),
        blocks_bytes: vec![4096],
        read_percents: vec![50],
        random_percents: vec![100],
        repetitions: 2,
        outstanding: 4,
        workers: 1,
        ramp_ns: 0,
        time_ns: 1_000_000,
        size_bytes: 1 << 20,
        environments: vec!["native".into(), "vm".into()],
        seed: 1,
    }
}

/// A run with this plan on a made-up host.
fn described(plan: Plan) -> Provenance {
    Provenance {
        format: RUN_FORMAT,
        version: "0".into(),
        command: vec![],
        working_folder: None,
        started_unix_s: 0,
        plan,
        host: HostFacts {
            kernel: "k".into(),
            distribution: "d".into(),
            cpu: "c".into(),
            processors: 2,
            memory_bytes: 1,
            hypervisor: None,
            virtualization: None,
            tuning: None,
            disk: DiskFacts { filesystem: "ext4".into(), ..DiskFacts::default() },
        },
        guest: None,
        other_guests: Vec::new(),
        crossing: None,
        setups: Vec::new(),
        machines: Vec::new(),
        appliances: Vec::new(),
        idle: Vec::new(),
        notes: vec![],
    }
}

fn load(seed: u32) -> LoadSpec {
    let access = AccessSpec::single(AccessLine::new(4096, 50.0, 100.0));
    LoadSpec {
        time_ns: 1_000_000,
        interval_ns: 1_000_000,
        seed: seed.into(),
        ..LoadSpec::new(access, 1 << 20)
    }
}

fn record(repetition: u32) -> PointRecord {
    let mut latency = LatencyRecorder::new();
    (1..100).for_each(|n| latency.record(n * 1000));
    let point = PointKey { block_bytes: 4096, read_percent: 50, random_percent: 100 };
    let target = TargetFacts {
        path: "null".into(),
        kind: TargetKind::Null,
        size_bytes: 1,
        direct: false,
        alignment_bytes: 1,
    };
    let mut outcome = LoadOutcome::empty(load(repetition), target);
    outcome.read.histogram = Some(latency.encode_histogram().unwrap());
    PointRecord {
        format: FORMAT,
        point,
        environment: "native".into(),
        repetition,
        started_unix_ns: 1_700_000_000_000_000_000,
        status: PointStatus::Measured(Box::new(Measured {
            outcome,
            host: host_use(1.0, 1.0, 0.0),
            processes: Vec::new(),
            host_elapsed_ns: 1,
            clock: None,
        })),
    }
}

fn folder_with_two_points() -> TempDir {
    let temp = TempDir::new().unwrap();
    let mut folder = RunFolder::create(temp.path(), provenance()).unwrap();
    folder.add(record(0)).unwrap();
    folder.add(record(1)).unwrap();
    temp
}

#[test]
fn a_start_that_fails_leaves_nothing_and_one_that_measured_leaves_all() {
    let temp = TempDir::new().unwrap();
    let made = temp.path().join("made");
    let begin = |path: &Path| RunFolder::<PointRecord>::create(path, provenance());
    assert!(begin(&made).unwrap().abandon());
    assert!(!made.exists(), "the folder is left");
    let there = temp.path().join("there");
    fs::create_dir(&there).unwrap();
    assert!(begin(&there).unwrap().abandon());
    assert_eq!(fs::read_dir(&there).unwrap().count(), 0);
    // A kill before the first result leaves a run that is replaced; it may be resumed too, and stays then.
    drop(begin(&made).unwrap());
    let resumed: RunFolder = RunFolder::resume(&made, &provenance()).unwrap();
    assert!(!resumed.abandon() && made.join("run.json").exists());
    let mut folder = begin(&made).unwrap();
    folder.add(record(0)).unwrap();
    assert!(!folder.abandon());
    assert!(matches!(begin(&made), Err(FolderError::Occupied(_))));
    assert_eq!(load_run::<PointRecord>(&made).unwrap().records.len(), 1);
}

#[test]
fn a_kill_while_the_run_is_begun_leaves_a_folder_that_can_be_begun() {
    let temp = TempDir::new().unwrap();
    fs::write(temp.path().join("run.json.new"), "{\"format\": 1, \"ki").unwrap();
    let folder = RunFolder::<PointRecord>::create(temp.path(), provenance()).unwrap();
    drop(folder);
    assert_eq!(read_provenance(temp.path()).unwrap(), provenance());
    assert!(!temp.path().join("run.json.new").exists());
}

#[test]
fn what_is_added_comes_back_histograms_included() {
    let temp = folder_with_two_points();
    let run = load_run::<PointRecord>(temp.path()).unwrap();
    assert_eq!(run.provenance, provenance());
    assert_eq!(run.records.len(), 2);
    let histogram = decode_histogram(&run.histograms["native/b4096-r50-x100/1/read"]).unwrap();
    assert_eq!((histogram.len(), histogram.max()), (99, 99_007));
    assert_eq!(run.histograms.len(), 2, "writes had none");
}

#[test]
fn a_killed_run_goes_on_wherever_it_was_cut() {
    for (name, bytes) in [(RESULTS, 7), (HISTOGRAMS, 5), (RESULTS, 1), (HISTOGRAMS, 1)] {
        let temp = folder_with_two_points();
        let path = temp.path().join(name);
        let length = fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(length - bytes).unwrap();
        let mut folder = RunFolder::resume(temp.path(), &provenance()).unwrap();
        let kept = folder.records().len();
        assert_eq!(kept, if name == RESULTS { 1 } else { 2 });
        folder.add(record(1)).unwrap();
        drop(folder);
        let run = load_run::<PointRecord>(temp.path()).unwrap();
        assert_eq!(run.records.len(), kept + 1);
        assert!(run.histograms.contains_key("native/b4096-r50-x100/1/read"), "{name} cut by {bytes}");
    }
}

#[test]
fn two_runs_at_once_are_refused() {
    let temp = TempDir::new().unwrap();
    let _first = RunFolder::<PointRecord>::create(temp.path(), provenance()).unwrap();
    assert!(matches!(
        RunFolder::<PointRecord>::resume(temp.path(), &provenance()),
        Err(FolderError::InUse(_))
    ));
    let other = TempDir::new().unwrap();
    let _held = lock(other.path()).unwrap();
    assert!(matches!(
        RunFolder::<PointRecord>::create(other.path(), provenance()),
        Err(FolderError::InUse(_))
    ));
}

#[test]
fn folders_that_hold_something_are_refused() {
    let temp = folder_with_two_points();
    assert!(matches!(
        RunFolder::<PointRecord>::create(temp.path(), provenance()),
        Err(FolderError::Occupied(_))
    ));
    let foreign = TempDir::new().unwrap();
    fs::write(foreign.path().join("thesis.tex"), "x").unwrap();
    assert!(matches!(
        RunFolder::<PointRecord>::create(foreign.path(), provenance()),
        Err(FolderError::Foreign(_))
    ));
    assert!(matches!(
        RunFolder::<PointRecord>::resume(foreign.path(), &provenance()),
        Err(FolderError::NoRun(_))
    ));
    assert!(matches!(load_run::<PointRecord>(foreign.path()), Err(FolderError::NoRun(_))));
}

#[test]
fn another_plan_is_named() {
    let temp = folder_with_two_points();
    let other = described(Plan::NativeVsVm(GridPlan { outstanding: 99, ..plan() }));
    let error = RunFolder::<PointRecord>::resume(temp.path(), &other).unwrap_err();
    assert!(error.to_string().contains("the queue depth"), "{error}");
}

#[test]
fn what_is_measured_of_a_host_makes_it_no_other_host_and_how_it_is_set_does() {
    let clock = |source: &str, read_ns| HostTuning {
        clock: Some(ClockFacts { source: source.into(), read_ns, ..ClockFacts::default() }),
        ..HostTuning::default()
    };
    let on = |tuning: Option<HostTuning>| {
        let mut provenance = provenance();
        provenance.host.tuning = tuning;
        provenance
    };
    let begun = on(Some(clock("tsc", 20)));
    assert_eq!(first_difference(&begun, &on(Some(clock("tsc", 35)))), None);
    assert_eq!(first_difference(&on(None), &begun), None, "a run of before does not say");
    let other = first_difference(&begun, &on(Some(clock("hpet", 20))));
    assert_eq!(other.as_deref(), Some("the host"));
}

#[test]
fn damage_is_reported_with_its_place() {
    let temp = folder_with_two_points();
    let path = temp.path().join(RESULTS);
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{{nonsense\n{text}")).unwrap();
    let error = load_run::<PointRecord>(temp.path()).unwrap_err().to_string();
    assert!(error.contains("results.jsonl") && error.contains("line 1"), "{error}");
}

/// Whether records are of a kind.
type Follows = fn(&Records) -> bool;

/// `run.json` of each study as version 0.1 recorded it, and whether its records are points, sets or trials.
const FORMAT_1: [(&str, Follows); 5] = [
    (include_str!("../../../pure/record/tests/format-1/native-vs-vm.json"), |records| {
        matches!(records, Records::Points(_))
    }),
    (include_str!("../../../pure/record/tests/format-1/adapters.json"), |records| {
        matches!(records, Records::Points(_))
    }),
    (include_str!("../../../pure/record/tests/format-1/neighbours.json"), |records| {
        matches!(records, Records::Sets(_))
    }),
    (include_str!("../../../pure/record/tests/format-1/deviation.json"), |records| {
        matches!(records, Records::Sets(_))
    }),
    (include_str!("../../../pure/record/tests/format-1/predictions.json"), |records| {
        matches!(records, Records::Trials(_))
    }),
];

#[test]
fn folders_of_an_earlier_version_are_loaded_and_gone_on_with() {
    for (text, follows) in FORMAT_1 {
        let temp = TempDir::new().unwrap();
        fs::write(temp.path().join(PROVENANCE), text).unwrap();
        let run = load_any_run(temp.path()).unwrap_or_else(|error| panic!("{error}"));
        assert!(follows(&run.records), "{:?}", run.provenance.plan);
        if let Records::Sets(_) = run.records {
            let mut folder = RunFolder::<SetRecord>::resume(temp.path(), &run.provenance).unwrap();
            folder.amend(|provenance| provenance.notes.clear()).unwrap();
            assert_eq!(load_any_run(temp.path()).unwrap().provenance.plan, run.provenance.plan);
        }
    }
}

#[test]
fn records_of_another_study_are_refused_by_its_name() {
    let temp = TempDir::new().unwrap();
    fs::write(temp.path().join(PROVENANCE), FORMAT_1[3].0).unwrap();
    let refused = |error: FolderError| {
        let words = error.to_string();
        assert!(words.contains("`study deviation`"), "{words}");
    };
    refused(load_run::<PointRecord>(temp.path()).unwrap_err());
    let provenance = read_provenance(temp.path()).unwrap();
    refused(RunFolder::<PointRecord>::resume(temp.path(), &provenance).unwrap_err());
    refused(RunFolder::<PointRecord>::create(&temp.path().join("new"), provenance).unwrap_err());
}

#[test]
fn a_record_that_could_not_be_read_again_is_refused_and_the_others_stay() {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("run");
    let mut folder = RunFolder::create(&path, provenance()).unwrap();
    let whole = record(0);
    folder.add(whole.clone()).unwrap();
    let mut endless = record(1);
    let PointStatus::Measured(measured) = &mut endless.status else { panic!("{endless:?}") };
    measured.outcome.total.iops = f64::NAN;
    let refused = folder.add(endless).unwrap_err();
    assert!(matches!(refused, FolderError::Unreadable(_)), "{refused}");
    assert_eq!(folder.records().len(), 1);
    drop(folder);
    assert_eq!(load_run::<PointRecord>(&path).unwrap().records.len(), 1);
}

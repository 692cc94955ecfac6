use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};
use tempfile::TempDir;
use virtbench_formats::read_profile;
use virtbench_record::{
    COSTS_FORMAT, CaseSet, Cost, CostPart, DiskCounts, DiskFacts, Footprint, HostFacts, HostUse, LeftOut,
    OperationSpeed, Plan, PredictionsPlan, Source, StorageSpeed,
};
use virtbench_samples::host::host_use;

use super::super::verify::Verified;
use super::*;
use crate::runner::begun_run::described;

/// What the child of [`a_kill_anywhere_loses_and_repeats_nothing`] is told: the folder and where it dies.
const CHILD: &str = "VIRTBENCH_TEST_RUN_OF_PREDICTIONS";
const TRIALS: u32 = 2;

/// Both sides without a machine. A kill or a stop comes in a call of this number, from 0.
#[derive(Default)]
struct Fake {
    calls: Vec<String>,
    kill_at: Option<usize>,
    stop_at: Option<usize>,
    /// A case that cannot be run natively, and one that cannot in the VM.
    fails: [Option<&'static str>; 2],
    /// What the reference does in turn with the VM.
    in_turn: Option<f64>,
    /// How fast storages are, where VMs differ in those.
    storages: Vec<StorageSpeed>,
}

impl Fake {
    fn call(&mut self, what: String, progress: &Progress<'_>) -> Result<(), ApplicationsError> {
        if self.kill_at == Some(self.calls.len()) {
            kill_process(getpid(), Signal::KILL).unwrap();
        }
        if self.stop_at == Some(self.calls.len()) {
            // As the handler of SIGTERM does, with the machine in the middle of something.
            progress.stop.store(true, Ordering::Relaxed);
        }
        self.calls.push(what);
        Ok(progress.check()?)
    }
}

impl TrialSides for Fake {
    fn basis(&mut self, progress: &mut Progress<'_>) -> Result<Basis, ApplicationsError> {
        if !self.storages.is_empty() {
            return self.call("storages".into(), progress).map(|()| Basis::Storages(self.storages.clone()));
        }
        self.call("costs".into(), progress).map(|()| Basis::Costs(Box::new(costs())))
    }

    fn renew(&mut self, _: &mut Basis, progress: &mut Progress<'_>) -> Result<(), ApplicationsError> {
        self.call("renew".into(), progress)
    }

    fn profile(
        &mut self,
        case: &Case,
        prepared: &Path,
        _: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Profile, ApplicationsError> {
        assert!(prepared.join("begun").exists() && prepared.join("whole").exists());
        self.call(format!("profile {}", case.name), progress)?;
        if self.fails[0] == Some(case.name.as_str()) {
            return Err(ApplicationsError::Target("no such luck".into()));
        }
        let toml = "name = 'app'\nio_per_second = 500\ncpu_user_percent = 60\ncpu_system_percent = 30\n\
                    workers = 1\nprocessors = 2\n";
        let disks = DiskCounts { writes: 4_000, written_bytes: 4_000 << 12, ..DiskCounts::default() };
        let footprint = Footprint {
            elapsed_ns: 1_000_000_000,
            cpu_ns: [500_000_000, 0],
            disks: Some(disks),
            ..Footprint::default()
        };
        let profile = read_profile(toml.as_bytes()).unwrap();
        Ok(Profile {
            host_use: Some(host(3.0)),
            footprint: Sourced::known(footprint, Source::User),
            ..profile
        })
    }

    fn verify(
        &mut self,
        case: &Case,
        _: &Profile,
        subject: Option<&str>,
        prepared: &Path,
        _: u32,
        progress: &mut Progress<'_>,
    ) -> Result<Verified, ApplicationsError> {
        assert!(prepared.join("whole").exists());
        let on = subject.map_or_else(String::new, |storage| format!(" on {storage}"));
        self.call(format!("verify {}{on}", case.name), progress)?;
        if self.fails[1] == Some(case.name.as_str()) {
            return Err(ApplicationsError::Measured("it crashed".into()));
        }
        let (capacity, reference) = (100.0, self.in_turn);
        Ok(Verified { capacity, reference, machine_percent: None, host: Some(host(150.0)), guest: None })
    }
}

/// A host of which other programs used so much.
fn host(others_percent: f64) -> HostUse {
    HostUse { others_percent: Some(others_percent), ..host_use(180.0, 100.0, 80.0) }
}

fn costs() -> Costs {
    let cost =
        |part, reference_ns, subject_ns| Cost { name: format!("{part:?}"), part, reference_ns, subject_ns };
    Costs {
        costs_format: COSTS_FORMAT,
        origin: None,
        host: HostFacts {
            kernel: String::new(),
            distribution: String::new(),
            cpu: String::new(),
            processors: 2,
            memory_bytes: 1,
            hypervisor: None,
            virtualization: None,
            tuning: None,
            disk: DiskFacts::default(),
        },
        adapter: "virtio-blk".into(),
        accelerator: "tcg".into(),
        vcpus: 2,
        costs: vec![
            cost(CostPart::User, 100.0, 500.0),
            cost(CostPart::System, 100.0, 500.0),
            cost(CostPart::Copy, 0.1, 0.3),
            cost(CostPart::Wait, 1e5, 3e5),
        ],
        crowded: Vec::new(),
        references: Vec::new(),
        left_out: vec![LeftOut { name: "tar".into(), why: "there is none".into() }],
    }
}

fn provenance(prepare: &str) -> Provenance {
    let case = |name: &str| Case {
        name: name.into(),
        command: vec![name.into()],
        metric: Some("elapsed".into()),
        workers: 1,
        with: Vec::new(),
        prepare: Some(prepare.into()),
    };
    let plan = PredictionsPlan {
        set: Some(CaseSet::Tuning),
        cases: vec![case("git"), case("xz")],
        trials: TRIALS,
        runs: 1,
        method: None,
        vcpus: 2,
        memory_bytes: 1 << 30,
        adapter: "virtio-blk".into(),
        storages: Vec::new(),
        size_bytes: 1 << 30,
        filesystem: "ext4".into(),
        accelerator: "auto".into(),
        limit_ns: 1,
    };
    described(Plan::Predictions(plan))
}

const PREPARE: &str = "touch begun; touch whole";

fn open(path: &Path, provenance: Provenance) -> RunFolder<Trial> {
    if path.join("run.json").exists() {
        RunFolder::resume(path, &provenance).unwrap()
    } else {
        RunFolder::create(path, provenance).unwrap()
    }
}

fn go_on(folder: &mut RunFolder<Trial>, sides: &mut Fake) -> Result<Vec<String>, ApplicationsError> {
    let stop = AtomicBool::new(false);
    let mut events = Vec::new();
    run_predictions(folder, sides, None, &mut Progress { stop: &stop, observer: &mut events })?;
    Ok(events)
}

/// A folder whose name a shell would take apart.
fn place() -> (TempDir, PathBuf) {
    let temp = TempDir::new().unwrap();
    let path = temp.path().join("it's a \"run\" $HOME;");
    (temp, path)
}

fn done(trials: &[Trial]) -> Vec<(String, u32)> {
    let mut all: Vec<(String, u32)> = trials.iter().map(|one| (one.case.clone(), one.trial)).collect();
    all.sort();
    all
}

fn all() -> Vec<(String, u32)> {
    ["git", "xz"].iter().flat_map(|name| (1..=TRIALS).map(|number| ((*name).to_owned(), number))).collect()
}

/// A storage of which a small operation takes so many microseconds.
fn storage(name: &str, us: f64) -> StorageSpeed {
    let speed = OperationSpeed { latency_ns: us * 1e3, per_second: 1e6 / us, bytes_per_second: 1e9 };
    StorageSpeed { storage: name.into(), read: speed, write: speed, flush_ns: us * 1e3 }
}

#[test]
fn an_application_is_predicted_for_every_other_storage_from_what_it_does_on_the_first() {
    let (_temp, path) = place();
    let mut provenance = provenance(PREPARE);
    let Plan::Predictions(plan) = &mut provenance.plan else { panic!("another plan") };
    plan.storages = ["fast", "slow", "slower"].map(str::to_owned).to_vec();
    plan.trials = 1;
    let storages = vec![storage("fast", 100.0), storage("slow", 200.0), storage("slower", 500.0)];
    let mut fake = Fake { storages, fails: [None, Some("xz")], ..Fake::default() };
    let mut folder = open(&path, provenance);
    go_on(&mut folder, &mut fake).unwrap();
    let expected = "storages, profile git, verify git on slow, verify git on slower, profile xz, verify xz on slow, verify xz on slower";
    assert_eq!(fake.calls.join(", "), expected);
    let tried: Vec<(Option<&str>, f64)> = folder
        .records()
        .iter()
        .map(|one| (one.storage.as_deref(), (1000.0 * one.predicted / one.reference).round()))
        .collect();
    // Of a second two processors compute for a quarter; it waits for three, which take twice and five times as long.
    assert_eq!(tried, [(Some("slow"), 571.0), (Some("slower"), 250.0)]);
    assert_eq!(untried(folder.provenance(), folder.records()), ["xz"], "on none of them");
    let failed = |note: &&String| note.starts_with("Trial 1 of xz on slow");
    assert_eq!(folder.provenance().notes.iter().filter(failed).count(), 2);
    // What failed is tried again, from the profile that there is.
    let mut again = Fake { storages: fake.storages, ..Fake::default() };
    go_on(&mut folder, &mut again).unwrap();
    assert_eq!(again.calls.join(", "), "verify xz on slow, verify xz on slower");
    assert!(folder.provenance().notes.iter().all(|note| !failed(&note)));
    drop(folder);
    assert_eq!(predict_again(&path, None).unwrap().records.len(), 4);
}

#[test]
fn a_run_of_predictions_tries_everything_once_case_by_case() {
    let (_temp, path) = place();
    let (mut folder, mut fake) = (open(&path, provenance(PREPARE)), Fake::default());
    let events = go_on(&mut folder, &mut fake).unwrap();
    let trial = ["profile git", "verify git", "profile xz", "verify xz"];
    let expected: Vec<&str> = ["costs"].into_iter().chain(trial).chain(trial).collect();
    assert_eq!(fake.calls, expected);
    assert_eq!(done(folder.records()), all());
    for trial in folder.records() {
        let hosts = [&trial.reference_host, &trial.machine_host].map(Option::as_ref);
        assert_eq!(hosts, [Some(&host(3.0)), Some(&host(150.0))], "what the host did beside each side");
    }
    let last = events.iter().rfind(|event| event.starts_with("Done")).unwrap();
    assert_eq!(last, "Done { done: 132, total: 132 }");
    assert!(is_whole(folder.provenance().plan.predictions().unwrap(), folder.records()));
    let (mut again, before) = (Fake::default(), fs::read(path.join("results.jsonl")).unwrap());
    go_on(&mut folder, &mut again).unwrap();
    assert!(again.calls.is_empty() && fs::read(path.join("results.jsonl")).unwrap() == before);
    // The same inputs lead to the same predictions; another method's may not.
    let predicted = predict_again(&path, None).unwrap();
    assert_eq!(predicted.records, folder.records());
    assert!(predict_again(&path, Some(PredictionMethod::Ratio)).is_err(), "it needs a surface");
}

#[test]
fn what_the_reference_did_in_turn_is_what_predictions_are_of() {
    let (_temp, path) = place();
    let mut folder = open(&path, provenance(PREPARE));
    go_on(&mut folder, &mut Fake { in_turn: Some(750.0), ..Fake::default() }).unwrap();
    let found = predict_again(&path, None).unwrap().records;
    assert_eq!(found, folder.records());
    // When it was profiled it did 500 a second.
    assert_eq!((found[0].in_turn, found[0].reference), (Some(1.5), 750.0));
    let (_temp, path) = place();
    let mut folder = open(&path, provenance(PREPARE));
    go_on(&mut folder, &mut Fake::default()).unwrap();
    let without = &folder.records()[0];
    assert!((found[0].predicted / without.predicted - 1.5).abs() < 1e-9 && without.in_turn.is_none());
    assert!((found[0].intervals[5][0] / without.intervals[5][0] - 1.5).abs() < 1e-9);
}

#[test]
fn what_a_storage_does_at_most_does_not_move_with_its_host() {
    let on_limited = |in_turn: Option<f64>| {
        let (_temp, path) = place();
        let mut provenance = provenance(PREPARE);
        let Plan::Predictions(plan) = &mut provenance.plan else { panic!("another plan") };
        plan.storages = ["fast", "limited"].map(str::to_owned).to_vec();
        let mut limited = storage("limited", 100.0);
        limited.write.per_second = 1000.0;
        let storages = vec![storage("fast", 100.0), limited];
        let mut folder = open(&path, provenance);
        go_on(&mut folder, &mut Fake { storages, in_turn, ..Fake::default() }).unwrap();
        folder.records()[0].clone()
    };
    let (still, moved) = (on_limited(None), on_limited(Some(1000.0)));
    assert_eq!((still.bottleneck.as_str(), moved.reference), ("what the storage does a second", 1000.0));
    assert_eq!((moved.predicted, &moved.intervals), (still.predicted, &still.intervals));
}

#[test]
fn costs_that_were_brought_are_renewed_before_each_trial_and_not_measured() {
    let (_temp, path) = place();
    let (mut folder, mut fake) = (open(&path, provenance(PREPARE)), Fake::default());
    let (stop, mut events) = (AtomicBool::new(false), Vec::new());
    let mut progress = Progress { stop: &stop, observer: &mut events };
    run_predictions(&mut folder, &mut fake, Some(&costs()), &mut progress).unwrap();
    let trial = ["renew", "profile git", "verify git", "profile xz", "verify xz"];
    assert_eq!(fake.calls, [trial, trial].concat());
    assert_eq!(done(folder.records()), all());
}

/// Waits until a process that the killed one's script had started is gone too.
fn wait_for_the_end_of(pid: &str) {
    let (stat, begun) = (format!("/proc/{pid}/stat"), Instant::now());
    while fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(begun.elapsed() < Duration::from_secs(10), "{pid} is still there");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_kill_anywhere_loses_and_repeats_nothing() {
    if let Ok(told) = std::env::var(CHILD) {
        let (kill_at, path) = told.split_once('|').unwrap();
        let prepare = fs::read_to_string(Path::new(path).with_extension("prepare")).unwrap();
        let mut fake = Fake { kill_at: kill_at.parse().ok(), ..Fake::default() };
        go_on(&mut open(Path::new(path), provenance(&prepare)), &mut fake).unwrap();
        panic!("it should have been killed");
    }
    // Both sides of two cases, and the costs before the first.
    let calls = 1 + TRIALS as usize * 4;
    for kill_at in (0..calls).map(Some).chain([None]) {
        let (temp, path) = place();
        // Without a number it dies in the first script, half-way.
        let flag = temp.path().join("flag");
        let prepare = format!(
            "touch begun; if [ -e '{0}' ]; then rm '{0}'; sleep 600 & echo $! > '{0}.pid'; kill -KILL $PPID; wait; fi; \
             touch whole",
            flag.display()
        );
        if kill_at.is_none() {
            fs::write(&flag, "").unwrap();
        }
        fs::write(path.with_extension("prepare"), &prepare).unwrap();
        let number = kill_at.map_or("-".to_owned(), |number| number.to_string());
        let (_, module) = module_path!().split_once("::").unwrap();
        let this_test = format!("{module}::a_kill_anywhere_loses_and_repeats_nothing");
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", &this_test])
            .env(CHILD, format!("{number}|{}", path.display()))
            .output()
            .unwrap();
        assert_eq!(child.status.signal(), Some(9), "{child:?}");
        assert_eq!(path.join("prepared/.git.new").exists(), kill_at.is_none());
        if kill_at.is_none() {
            wait_for_the_end_of(fs::read_to_string(flag.with_extension("pid")).unwrap().trim());
        }
        let before = done(&load_run::<Trial>(&path).unwrap().records);
        let profiles = fs::read_dir(path.join("profiles")).map_or(0, Iterator::count);
        assert!(
            matches!(RunFolder::<Trial>::create(&path, provenance(&prepare)), Err(FolderError::Occupied(_)))
                == (path.join("costs.json").exists())
        );
        let (mut folder, mut fake) = (open(&path, provenance(&prepare)), Fake::default());
        go_on(&mut folder, &mut fake).unwrap();
        assert_eq!(done(&load_run::<Trial>(&path).unwrap().records), all(), "killed at {kill_at:?}");
        let count = |what: &str| fake.calls.iter().filter(|call| call.starts_with(what)).count();
        assert_eq!((count("verify"), count("profile")), (4 - before.len(), 4 - profiles), "{kill_at:?}");
        assert!(path.join("prepared/git/whole").exists() && !path.join("prepared/.git.new").exists());
    }
}

#[test]
fn a_stop_anywhere_is_no_result_and_leaves_nothing_incomplete() {
    for stop_at in 0..1 + TRIALS as usize * 4 {
        let (_temp, path) = place();
        let mut folder = open(&path, provenance(PREPARE));
        let mut fake = Fake { stop_at: Some(stop_at), ..Fake::default() };
        let stopped = go_on(&mut folder, &mut fake).unwrap_err();
        assert!(matches!(stopped, ApplicationsError::Stopped), "{stopped}");
        assert_eq!(path.join("costs.json").exists(), stop_at > 0);
        assert_eq!(path.join("costs-1.json").exists(), stop_at > 0);
        assert!(folder.provenance().notes.is_empty(), "a stop is no failure of a case");
        go_on(&mut folder, &mut Fake::default()).unwrap();
        assert_eq!(done(folder.records()), all());
    }
}

#[test]
fn a_case_that_fails_is_noted_and_tried_again_by_the_next_run() {
    let (_temp, path) = place();
    let mut folder = open(&path, provenance(PREPARE));
    let mut fake = Fake { fails: [Some("git"), Some("xz")], ..Fake::default() };
    let events = go_on(&mut folder, &mut fake).unwrap();
    assert_eq!(events.iter().filter(|event| event.contains(" failed: ")).count(), 4);
    assert_eq!(
        events.iter().rfind(|event| event.starts_with("Done")).unwrap(),
        "Done { done: 132, total: 132 }"
    );
    let notes = &folder.provenance().notes;
    assert!(notes.len() == 4 && notes[0] == "Trial 1 of git failed: no such luck", "{notes:?}");
    assert!(folder.records().is_empty());
    go_on(&mut folder, &mut Fake::default()).unwrap();
    assert!(folder.provenance().notes.is_empty() && done(folder.records()) == all());
}

#[test]
fn a_script_that_fails_leaves_no_prepared_folder() {
    let (_temp, path) = place();
    let mut folder = open(&path, provenance("touch begun; echo no disk >&2; false"));
    go_on(&mut folder, &mut Fake::default()).unwrap();
    assert!(folder.provenance().notes[0].contains("the script that prepares git"), "no note");
    assert!(folder.provenance().notes[0].contains("no disk"));
    assert_eq!(fs::read_dir(path.join("prepared")).unwrap().count(), 0);
}

#[test]
fn torn_trials_are_cut_off_and_damaged_ones_refused_with_their_line() {
    let (_temp, path) = place();
    let mut folder = open(&path, provenance(PREPARE));
    go_on(&mut folder, &mut Fake::default()).unwrap();
    drop(folder);
    let results = path.join("results.jsonl");
    let length = fs::metadata(&results).unwrap().len();
    OpenOptions::new().write(true).open(&results).unwrap().set_len(length - 7).unwrap();
    let mut folder = open(&path, provenance(PREPARE));
    assert_eq!(folder.records().len(), 3);
    let mut fake = Fake::default();
    go_on(&mut folder, &mut fake).unwrap();
    assert_eq!(fake.calls, ["verify xz"]);
    assert_eq!(done(&load_run::<Trial>(&path).unwrap().records), all());
    drop(folder);
    let text = fs::read_to_string(&results).unwrap();
    let damaged: Vec<&str> =
        text.lines().enumerate().map(|(n, line)| if n == 1 { "{no" } else { line }).collect();
    let mut file = fs::File::create(&results).unwrap();
    file.write_all((damaged.join("\n") + "\n").as_bytes()).unwrap();
    let error = RunFolder::<Trial>::resume(&path, &provenance(PREPARE)).unwrap_err().to_string();
    assert!(error.contains("results.jsonl: line 2 is damaged"), "{error}");
    let error = load_run::<Trial>(&path).unwrap_err().to_string();
    assert!(error.contains("line 2"), "{error}");
}

#[test]
fn a_second_run_in_the_folder_and_another_plan_are_refused() {
    let (_temp, path) = place();
    let folder = open(&path, provenance(PREPARE));
    let second = RunFolder::<Trial>::resume(&path, &provenance(PREPARE));
    assert!(matches!(second, Err(FolderError::InUse(_))));
    drop(folder);
    let error = RunFolder::<Trial>::resume(&path, &provenance("true")).unwrap_err().to_string();
    assert!(error.contains("the applications"), "{error}");
}

#[test]
fn what_a_killed_run_left_of_its_machines_is_swept_away() {
    let (_temp, path) = place();
    let mut folder = open(&path, provenance(PREPARE));
    fs::write(path.join("virtbench-vm-7.img"), "x").unwrap();
    fs::create_dir_all(path.join("virtbench-native-7/work")).unwrap();
    fs::write(path.join("notes.txt"), "x").unwrap();
    go_on(&mut folder, &mut Fake::default()).unwrap();
    assert!(!path.join("virtbench-vm-7.img").exists() && !path.join("virtbench-native-7").exists());
    assert!(path.join("notes.txt").exists());
}

//! Every kind of load on a real file system, briefly.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use virtbench_workload::files::{
    BonnieSpec, CacheControl, CharacterIo, DbenchAction, DbenchOp, DbenchSpec, FileLoad, FileModel, FileSpec,
    IozoneSpec, IozoneTest, Pace, Personality,
};
use virtbench_workload::{Arrivals, Rate};
use virtbench_workloads::files::{Ended, FileRun, FilesError, Outside, Part, Reach, Report};

/// Operations that a load without an end of its own does at least, enough for each kind of its operations to occur.
const ENOUGH: u64 = 500;

fn short(load: FileLoad) -> FileSpec {
    FileSpec { run_ns: 60_000_000_000, ..FileSpec::new(load) }
}

/// Runs a load to its own end or, if it has none, until it has done enough, however busy this machine is.
fn go(place: &Path, spec: &FileSpec) -> Report {
    let run = FileRun::prepare(spec, 1, place, Reach::OwnFiles, &|| false).unwrap();
    let counted = AtomicU64::new(0);
    let count = |operations, _| {
        counted.fetch_add(operations, Ordering::Relaxed);
    };
    let has_end = matches!(spec.load, FileLoad::Bonnie(_) | FileLoad::Iozone(_));
    let is_over = || !has_end && counted.load(Ordering::Relaxed) >= ENOUGH;
    let report = run.run(1, &Outside { is_over: &is_over, count: &count }).unwrap();
    let operations: u64 = report.parts.iter().map(|part| part.operations).sum();
    assert!(counted.into_inner() <= operations);
    report
}

fn run(spec: &FileSpec) -> Report {
    // Under the build's folder, on a disk: /tmp may be memory, which refuses O_DIRECT.
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let report = go(place.path(), spec);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0, "nothing is left");
    report
}

fn part<'a>(report: &'a Report, name: &str) -> &'a Part {
    report
        .parts
        .iter()
        .find(|part| part.name == name)
        .unwrap_or_else(|| panic!("{name}: {:?}", names(report)))
}

fn names(report: &Report) -> Vec<&str> {
    report.parts.iter().map(|part| part.name.as_str()).collect()
}

/// A personality with few, small files.
fn small(personality: Personality, threads: u32) -> FileModel {
    let mut model = personality.model();
    model.set_threads(threads).unwrap();
    model.filesets[0].entries = 100;
    model
}

#[test]
fn every_personality_does_all_of_its_operations() {
    for personality in Personality::ALL {
        let model = small(personality, 4);
        let report = run(&short(FileLoad::Model(model)));
        assert_eq!(report.ended, None, "{personality:?}");
        let wanted: &[&str] = match personality {
            Personality::FileServer => &[
                "createfile",
                "writewholefile",
                "closefile",
                "openfile",
                "appendfilerand",
                "readwholefile",
                "deletefile",
                "statfile",
            ],
            Personality::MailServer => &[
                "deletefile",
                "createfile",
                "appendfilerand",
                "fsync",
                "closefile",
                "openfile",
                "readwholefile",
            ],
            Personality::WebServer => &["openfile", "readwholefile", "closefile", "appendfilerand"],
        };
        assert_eq!(names(&report), wanted, "{personality:?}");
        for part in &report.parts {
            assert!(part.operations > 0 && part.errors == 0, "{personality:?}: {part:?}");
            assert_eq!(part.latency.count(), part.operations);
        }
    }
}

#[test]
fn the_web_server_reads_ten_pages_a_log_line() {
    let report = run(&short(FileLoad::Model(small(Personality::WebServer, 1))));
    let (reads, appends) =
        (part(&report, "readwholefile").operations, part(&report, "appendfilerand").operations);
    assert!(reads.abs_diff(appends * 10) <= 10, "{reads} reads, {appends} appends");
    // Appends have between one byte and 16 KiB.
    let mean = part(&report, "appendfilerand").bytes as f64 / appends as f64;
    assert!(appends < 50 || (4_000.0..12_500.0).contains(&mean), "{mean}");
}

#[test]
fn a_rate_is_kept_and_is_of_all_threads_together() {
    for open in [false, true] {
        let mut spec = short(FileLoad::Model(small(Personality::WebServer, 4)));
        spec.pace = Some(Pace { rate: Rate { per_second: 1_000.0, arrivals: Arrivals::Constant }, open });
        let report = run(&spec);
        let operations: u64 = report.parts.iter().map(|part| part.operations).sum();
        // Never more; how much less depends on how busy this machine is.
        let due = report.elapsed_ns as f64 / 1e6 + 4.0;
        assert!(operations >= ENOUGH && operations as f64 <= due, "{operations} of {due}");
    }
}

#[test]
fn bonnie_makes_its_tests_in_its_order_with_either_way_of_characters() {
    for kind in [CharacterIo::Buffered, CharacterIo::Syscall] {
        let bonnie = BonnieSpec {
            characters: Some(kind),
            seeks: 101,
            small_files: 64,
            small_file_bytes: 100,
            ..BonnieSpec::new(1 << 20)
        };
        let report = run(&short(FileLoad::Bonnie(bonnie)));
        assert_eq!(report.ended, None);
        assert_eq!(
            names(&report),
            [
                "write-character",
                "write-block",
                "rewrite-block",
                "read-character",
                "read-block",
                "seeks",
                "create-sequential",
                "stat-sequential",
                "delete-sequential",
                "create-random",
                "stat-random",
                "delete-random",
            ]
        );
        for name in ["write-character", "write-block", "rewrite-block", "read-character", "read-block"] {
            assert_eq!(part(&report, name).bytes, 1 << 20, "{name}");
        }
        assert_eq!(part(&report, "seeks").operations, 101);
        assert_eq!(part(&report, "stat-random").operations, 64);
        assert!(part(&report, "write-block").cpu_ns.is_some_and(|cpu| cpu[0] + cpu[1] > 0));
    }
}

#[test]
fn iozone_makes_each_test_for_each_record_size() {
    let iozone = IozoneSpec { record_bytes: vec![4096, 65536], ..IozoneSpec::new(1 << 20) };
    for cache in [CacheControl::Drop, CacheControl::Direct] {
        let report = run(&FileSpec { cache, ..short(FileLoad::Iozone(iozone.clone())) });
        assert_eq!(report.ended, None);
        assert_eq!(report.parts.len(), 2 * IozoneTest::ALL.len());
        assert!(report.parts.iter().all(|part| part.bytes == 1 << 20), "{:?}", report.parts);
        assert_eq!(part(&report, "strided-read 64 KiB").operations, 16);
        assert_eq!(part(&report, "random-write 4 KiB").operations, 256);
    }
}

#[test]
fn a_test_that_reads_finds_a_file_also_if_writing_is_not_asked_for() {
    let tests = vec![IozoneTest::BackwardRead];
    let report = run(&short(FileLoad::Iozone(IozoneSpec { tests, ..IozoneSpec::new(1 << 20) })));
    assert_eq!(names(&report), ["backward-read 64 KiB", "backward-read 128 KiB"]);
}

fn loadfile() -> DbenchSpec {
    use DbenchAction::{
        Close, FindFirst, Flush, LockX, NtCreateX, QueryFileInformation, QueryFsInformation,
        QueryPathInformation, ReadX, Rename, SetFileInformation, Unlink, UnlockX, WriteX,
    };
    let names =
        ["/clients/client1/a.txt", "/clients/client1/b.txt", "/clients/client1/*", "/clients/client1/none"];
    let op = |action, succeeds| DbenchOp { due_ns: None, action, succeeds };
    let good = [
        NtCreateX { name: 0, options: 0x40, disposition: 2, handle: 1 },
        WriteX { handle: 1, offset: 0, size: 65536 },
        Flush { handle: 1 },
        LockX { handle: 1, offset: 0, size: 10 },
        ReadX { handle: 1, offset: 4096, size: 4096 },
        UnlockX { handle: 1, offset: 0, size: 10 },
        QueryFileInformation { handle: 1 },
        SetFileInformation { handle: 1 },
        QueryFsInformation,
        QueryPathInformation { name: 0 },
        FindFirst { name: 2, most: 10 },
        Close { handle: 1 },
        Rename { from: 0, to: 1 },
        Unlink { name: 1 },
    ];
    let mut ops: Vec<DbenchOp> = good.into_iter().map(|action| op(action, true)).collect();
    ops.push(op(NtCreateX { name: 3, options: 0x40, disposition: 1, handle: 2 }, false));
    DbenchSpec { clients: 3, names: names.map(str::to_owned).to_vec(), ops, client_bytes_per_second: None }
}

#[test]
fn dbench_clients_replay_every_kind_of_request_without_a_surprise() {
    let report = run(&short(FileLoad::Dbench(loadfile())));
    assert_eq!(report.ended, None);
    assert_eq!(report.parts.len(), 14, "{:?}", names(&report));
    assert_eq!(report.error_kinds.len(), 0, "{:?}", report.error_kinds);
    let (writes, reads) = (part(&report, "WriteX"), part(&report, "ReadX"));
    assert_eq!((writes.bytes / writes.operations, reads.bytes / reads.operations), (65536, 4096));
    assert!(writes.operations >= 3);
}

#[test]
fn a_request_that_ends_otherwise_than_recorded_is_counted() {
    let mut load = loadfile();
    // The name exists now, so that what failed when it was recorded succeeds.
    load.ops.truncate(1);
    load.ops[0].succeeds = false;
    // What fails is no operation done, so that only its time ends the run.
    let report = run(&FileSpec { run_ns: 500_000_000, ..FileSpec::new(FileLoad::Dbench(load)) });
    assert!(part(&report, "NTCreateX").errors > 0);
    assert!(report.error_kinds.contains_key("InvalidData"), "{:?}", report.error_kinds);
}

#[test]
fn a_load_that_does_not_fit_is_refused_before_it_writes() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let spec = FileSpec::new(FileLoad::Bonnie(BonnieSpec::new(1 << 49)));
    let error = FileRun::prepare(&spec, 1, place.path(), Reach::OwnFiles, &|| false).err().unwrap();
    assert!(matches!(error, FilesError::Full { .. }), "{error}");
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
}

#[test]
fn a_load_that_is_stopped_keeps_what_it_measured() {
    let place = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let bonnie = BonnieSpec { characters: None, ..BonnieSpec::new(1 << 20) };
    let model = small(Personality::FileServer, 2);
    for load in [FileLoad::Bonnie(bonnie), FileLoad::Model(model)] {
        let spec = FileSpec { run_ns: 3_600_000_000_000, ..FileSpec::new(load) };
        let run = FileRun::prepare(&spec, 1, place.path(), Reach::OwnFiles, &|| false).unwrap();
        let stop = AtomicBool::new(false);
        let report = std::thread::scope(|scope| {
            let is_over = || stop.load(Ordering::Relaxed);
            let running = scope.spawn(move || run.run(1, &Outside { is_over: &is_over, count: &|_, _| {} }));
            std::thread::sleep(std::time::Duration::from_secs(1));
            stop.store(true, Ordering::Relaxed);
            running.join().unwrap().unwrap()
        });
        // A model has no end of its own, so its time is up when it is stopped; Bonnie's tests on so small
        // a file may be through by then.
        assert!(matches!(report.ended, None | Some(Ended::Interrupted)), "{:?}", report.ended);
        assert!(!report.parts.is_empty());
    }
}

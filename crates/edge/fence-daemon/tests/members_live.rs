//! Disks that come and go while others are used, by a driver and NBD clients of ours.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, reason = "a test fails by panicking")]

use crate::common;
use crate::driver;

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use common::{Daemon, run, success};
use driver::{Client, DATA};
use tempfile::TempDir;
use virtbench_fence::catalogue::{HYBRID_PARTITIONED, PASS_THROUGH, Variant};
use virtbench_fence_daemon::admin::{Offer, ResizeStep, add_to_file, inspect, remove_from_file};
use virtbench_fence_daemon::config::{CacheTable, Config, DiskTable, Size};
use virtbench_fence_daemon::control::{ControlError, Question, Refusal, ask, ask_handing};
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon as Serving, admin, metrics};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};
use vm_memory::{Bytes, GuestAddress};

const MIB: u64 = 1 << 20;
const DISK: u64 = 8 * MIB;
/// The sector in the middle.
const HALF: u64 = DISK / 1024;

/// Disks `a` and `b`, with room for more, and with `cached` a part of the cache each.
struct World {
    daemon: Daemon,
    control: PathBuf,
    /// Of logs in memory.
    memory: TempDir,
}

fn table(folder: &Path, name: &str, is_cached: bool) -> DiskTable {
    DiskTable {
        socket: Some(folder.join(name)),
        queues: 1,
        cache: is_cached.then_some(Size(4 * MIB)),
        bypass: is_cached.then_some(Size(4096)),
        ..common::exported(name, DISK)
    }
}

fn begin(variant: &'static Variant) -> World {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name);
    let memory = TempDir::new_in("/dev/shm").unwrap();
    let is_cached = variant.name == HYBRID_PARTITIONED.name;
    for device in ["slow", "fast"] {
        // What is there already must never be seen.
        fs::write(path(device), vec![0xee; 64 << 20]).unwrap();
    }
    let config = Config {
        control: Some(path("control")),
        slow: Some(common::file(&path("slow"))),
        fast: is_cached.then(|| common::file(&path("fast"))),
        cache: CacheTable { memory: memory.path().to_owned(), ..CacheTable::default() },
        scheduler: common::scheduler(variant),
        nbd: common::nbd(path("nbd")),
        metrics: Some("127.0.0.1:0".parse().unwrap()),
        ..Config::new(["a", "b"].map(|name| table(folder.path(), name, is_cached)).to_vec())
    };
    virtbench_fence_daemon::format(&config, true).unwrap();
    let control = path("control");
    World { daemon: Daemon::of_config(folder, config, false).unwrap(), control, memory }
}

impl World {
    fn config(&self) -> Config {
        Config::load(&self.daemon.path("fence.toml")).unwrap()
    }

    fn folder(&self) -> PathBuf {
        self.daemon.path("")
    }

    fn asks(&self, question: &Question, socket: Option<&Path>) -> Result<Vec<ResizeStep>, ControlError> {
        let offer = Offer::make(&self.config(), socket).unwrap();
        let handed: Vec<BorrowedFd<'_>> = offer.descriptors().collect();
        let mut steps = Vec::new();
        assert!(ask_handing(&self.control, question, &handed, |step| steps.push(step))?, "nobody listens");
        offer.taken();
        Ok(steps)
    }

    /// As the command does it.
    fn add(&self, disk: &DiskTable) -> Result<Vec<ResizeStep>, ControlError> {
        let steps = self.asks(&Question::Add(Box::new(disk.clone())), disk.socket.as_deref())?;
        add_to_file(&self.daemon.path("fence.toml"), disk).unwrap();
        Ok(steps)
    }

    fn remove(&self, name: &str) -> Result<Vec<ResizeStep>, ControlError> {
        let steps = self.asks(&Question::Remove { disk: name.to_owned() }, None)?;
        remove_from_file(&self.daemon.path("fence.toml"), name).unwrap();
        Ok(steps)
    }

    fn figures(&self) -> String {
        metrics::fetch(self.daemon.figures()).unwrap()
    }

    fn connected(&self, name: &str) -> Client {
        Client::connect(&self.daemon.path(name))
    }
}

fn refused(answer: Result<Vec<ResizeStep>, ControlError>) -> (Refusal, String) {
    match answer {
        Err(ControlError::Refused { kind, why }) => (kind, why),
        other => panic!("{other:?}"),
    }
}

/// What the driver reads at a sector.
fn read(driver: &mut Client, sector: u64) -> Vec<u8> {
    assert_eq!(driver.ask(0, sector), 0);
    let mut found = vec![1; 4096];
    driver.map.read_slice(&mut found, GuestAddress(DATA)).unwrap();
    found
}

fn write(driver: &mut Client, sector: u64, byte: u8) {
    driver.map.write_slice(&[byte; 4096], GuestAddress(DATA)).unwrap();
    assert_eq!(driver.ask(1, sector), 0);
}

fn of_requests(figures: &str, disk: &str) -> f64 {
    let lines = figures.lines().filter(|line| line.contains("_requests_total{") && line.contains(disk));
    lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
}

/// A disk comes and another goes while `a` is written and verified, and its driver keeps its connection.
fn changes_under_load(variant: &'static Variant) {
    let world = begin(variant);
    let is_cached = variant.name == HYBRID_PARTITIONED.name;
    let (folder, uri) = (world.folder(), world.daemon.uri("a"));
    let (mut a, b) = (world.connected("a"), world.connected("b"));
    write(&mut a, HALF, 0xa1);
    let before = of_requests(&world.figures(), "\"a\"");
    let load = thread::spawn(move || {
        // In front of what the driver writes.
        let spec = LoadSpec {
            verify: true,
            outstanding: 8,
            ramp_ns: 0,
            time_ns: 3_000_000_000,
            ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 50.0, 100.0)), 4 * MIB)
        };
        common::apply(&spec, &common::target(uri))
    });
    let steps = world.add(&table(&folder, "c", is_cached)).unwrap();
    assert!(steps.contains(&ResizeStep::Zeroed) && steps.contains(&ResizeStep::Label), "{steps:?}");
    let mut c = world.connected("c");
    let last = DISK / 512 - 8;
    assert_eq!(
        (read(&mut c, 0), read(&mut c, last)),
        (vec![0; 4096], vec![0; 4096]),
        "somebody else's bytes"
    );
    write(&mut c, last, 0xc1);
    assert_eq!(c.ask(1, last + 8), 1, "beyond its end");
    assert_eq!(read(&mut a, HALF), [0xa1; 4096], "the driver of another disk goes on");
    let (kind, why) = refused(world.remove("b"));
    assert!(kind == Refusal::Target && why.contains("a client uses it"), "{why}");
    drop(b);
    world.remove("b").unwrap();
    assert!(!world.daemon.path("b").exists(), "its socket goes");
    let size = |export: &str| run("nbdinfo", "libnbd-bin", &["--size", &world.daemon.uri(export)]);
    assert!(!size("b").status.success() && size("c").status.success());
    let listed = success("nbdinfo", "libnbd-bin", &["--list", &world.daemon.uri("")]);
    assert!(listed.contains("export=\"c\"") && !listed.contains("export=\"b\""), "{listed}");
    assert_eq!(read(&mut c, last), [0xc1; 4096], "its number is another one");
    write(&mut a, HALF + 8, 0xa2);
    let outcome = load.join().unwrap();
    assert_eq!((outcome.errors, outcome.verify.unwrap().damaged()), (0, 0));
    let figures = world.figures();
    assert!(of_requests(&figures, "\"a\"") > before && before > 0.0, "a disk that stays keeps its counts");
    assert!(of_requests(&figures, "\"c\"") > 0.0 && !figures.contains("\"b\""), "{figures}");
    // The disk of the same name is another one.
    world.add(&table(&folder, "b", is_cached)).unwrap();
    assert_eq!(read(&mut world.connected("b"), 0), [0; 4096]);
    drop((a, c));
    let config = world.config();
    let folder = world.daemon.stop();
    let found = inspect(&config, true, &mut |_, _| ()).unwrap();
    assert!(found.faults.is_empty() && found.changed.is_empty(), "{found:?}");
    let text = fs::read_to_string(folder.path().join("fence.toml")).unwrap();
    let daemon = Daemon::of_text(folder, &text, false).unwrap();
    assert_eq!(read(&mut Client::connect(&daemon.path("c")), last), [0xc1; 4096]);
    let mut a = Client::connect(&daemon.path("a"));
    assert_eq!((read(&mut a, HALF), read(&mut a, HALF + 8)), (vec![0xa1; 4096], vec![0xa2; 4096]));
}

#[test]
fn a_disk_comes_and_another_goes_while_others_are_used() {
    changes_under_load(&PASS_THROUGH);
}

#[test]
fn a_cache_is_divided_anew_while_its_disks_are_used_and_nothing_is_lost() {
    changes_under_load(&HYBRID_PARTITIONED);
}

#[test]
fn a_change_of_disks_at_work_that_cannot_be_is_refused_and_changes_nothing() {
    let world = begin(&HYBRID_PARTITIONED);
    let folder = world.folder();
    let mut a = world.connected("a");
    write(&mut a, HALF, 0xa1);
    let before = fs::read(world.daemon.path("slow")).unwrap();
    let c = table(&folder, "c", true);
    let add = |disk: &DiskTable| {
        refused(world.asks(&Question::Add(Box::new(disk.clone())), disk.socket.as_deref()))
    };
    for (disk, kind, says) in [
        (DiskTable { size: Size(1 << 30), ..c.clone() }, Refusal::Target, "the largest free one has"),
        (DiskTable { size: Size(5), ..c.clone() }, Refusal::Value, "multiple of 4096"),
        (DiskTable { cache: None, ..c.clone() }, Refusal::Value, "cache"),
        (DiskTable { cache: Some(Size(1 << 30)), ..c.clone() }, Refusal::Value, "fast device"),
    ] {
        let (found, why) = add(&disk);
        assert!(found == kind && why.contains(says), "{why}");
        assert!(!world.daemon.path("c").exists(), "an offer that is refused goes");
    }
    let (kind, why) = refused(world.asks(
        &Question::Add(Box::new(DiskTable {
            socket: None,
            size: Size(4 * MIB),
            ..table(&folder, "a", true)
        })),
        None,
    ));
    assert!(kind == Refusal::Value && why.contains("there is a disk a already"), "{why}");
    let (kind, why) = refused(world.asks(&Question::Remove { disk: "z".to_owned() }, None));
    assert!(kind == Refusal::NoDisk && why.contains("there is no disk z"), "{why}");
    let question = Question::Add(Box::new(c));
    let nothing = refused(ask(&world.control, &question, |_| ()).map(|_| Vec::new()));
    assert!(nothing.1.contains("was not handed over"), "{nothing:?}");
    // Neither listens nor is a log.
    let file = tempfile::tempfile().unwrap();
    let wrong = ask_handing(&world.control, &question, &[file.as_fd(), file.as_fd()], |_| ());
    assert!(matches!(wrong, Err(ControlError::Refused { .. })), "{wrong:?}");
    assert!(before == fs::read(world.daemon.path("slow")).unwrap());
    assert_eq!(read(&mut a, HALF), [0xa1; 4096]);
    drop(a);
    let memory = world.memory;
    drop(world.daemon.stop());
    assert_eq!(
        fs::read_dir(memory.path()).unwrap().count(),
        0,
        "neither the daemon nor an offer leaves a log"
    );
}

#[test]
fn a_change_at_work_that_fails_half_way_ends_the_daemon_and_is_completed_at_rest() {
    let world = begin(&HYBRID_PARTITIONED);
    write(&mut world.connected("a"), HALF, 0xa1);
    let (config, folder) = (world.config(), world.daemon.stop());
    let stopper = Stopper::new().unwrap();
    let (ours, served) = (config.clone(), stopper.clone());
    let (ready, started) = mpsc::channel();
    let daemon = thread::spawn(move || {
        let daemon = Serving::start(&ours, served).unwrap();
        ready.send(()).unwrap();
        daemon.run()
    });
    started.recv_timeout(Duration::from_secs(60)).unwrap();
    let disk = DiskTable { socket: None, ..table(folder.path(), "c", true) };
    let offer = Offer::make(&config, None).unwrap();
    // Nothing can be allocated in a file that is open for reading alone, which shows once the cache is divided.
    let name = fs::read_dir(world.memory.path()).unwrap().filter_map(Result::ok);
    let name = name.map(|entry| entry.path()).find(|path| fs::metadata(path).unwrap().len() == 0).unwrap();
    let unwritable = fs::File::open(name).unwrap();
    let asked = ask_handing(
        world.control.as_path(),
        &Question::Add(Box::new(disk.clone())),
        &[unwritable.as_fd()],
        |_| (),
    );
    assert!(asked.is_err(), "{asked:?}");
    let ended = daemon.join().unwrap().unwrap_err().to_string();
    assert!(ended.contains("the same command completes it"), "{ended}");
    drop(offer);
    admin::add(&config, &disk, |_| true).unwrap();
    add_to_file(&folder.path().join("fence.toml"), &disk).unwrap();
    let text = fs::read_to_string(folder.path().join("fence.toml")).unwrap();
    let daemon = Daemon::of_text(folder, &text, false).unwrap();
    assert_eq!(read(&mut Client::connect(&daemon.path("a")), HALF), [0xa1; 4096]);
}

#[test]
fn an_answer_that_nobody_hears_leaves_the_daemon_its_log() {
    let world = begin(&HYBRID_PARTITIONED);
    let disk = DiskTable { socket: None, ..table(&world.folder(), "c", true) };
    let offer = Offer::make(&world.config(), None).unwrap();
    let second = Offer::make(&world.config(), None).unwrap_err().to_string();
    assert!(second.contains("another change of disks is under way"), "{second}");
    let handed: Vec<BorrowedFd<'_>> = offer.descriptors().collect();
    let question = Question::Add(Box::new(disk.clone()));
    assert!(ask_handing(&world.control, &question, &handed, |_| ()).unwrap());
    drop(handed);
    drop(offer);
    let logs = || -> Vec<u64> {
        let entries = fs::read_dir(world.memory.path()).unwrap();
        entries.map(|entry| entry.unwrap().metadata().unwrap().len()).collect()
    };
    assert!(matches!(logs()[..], [bytes] if bytes > 0), "{:?}", logs());
    // The daemon has done it already, and takes nothing more.
    world.add(&disk).unwrap();
    assert!(matches!(logs()[..], [bytes] if bytes > 0), "{:?}", logs());
}

//! A guest on disks of the fence's daemon, which goes away and comes back. Needs QEMU and a guest kernel.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests are tests")]

use std::fs::{self, File};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use virtbench_fence_daemon::config::{
    CacheTable, Config, DeviceSpec, DeviceTable, DiskTable, Limits, PredictTable, SchedulerTable, Size,
};
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon, format};
use virtbench_lab::{
    Accelerator, Environment, GuestConfig, GuestDisk, GuestImage, Machine, Qemu, TimeLimits, Vm,
    find_adapter, find_kernel, measure_observed,
};
use virtbench_record::{AcceleratorFacts, Measured};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

const DISK_BYTES: u64 = 16 << 20;

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// A daemon in a thread of this process.
struct Served {
    stopper: Stopper,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    fn start(config: &Path) -> Self {
        let stopper = Stopper::new().unwrap();
        let (config, stop) = (or_mend(Config::load(config)), stopper.clone());
        let (up, is_up) = mpsc::channel();
        let thread = thread::spawn(move || {
            let daemon = or_mend(Daemon::start(&config, stop));
            up.send(()).unwrap();
            or_mend(daemon.run());
        });
        is_up.recv_timeout(Duration::from_secs(60)).expect("the daemon does not start");
        Self { stopper, thread: Some(thread) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stopper.stop();
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

fn configure(folder: &Path) -> std::path::PathBuf {
    for device in ["slow", "fast"] {
        File::create(folder.join(device)).unwrap().set_len(64 << 20).unwrap();
    }
    let path = folder.join("fence.toml");
    let file = |name: &str| Some(DeviceTable::new(DeviceSpec::File(folder.join(name))));
    let predict =
        PredictTable { slow_knots: vec![(0, 0.2)], fast_per_io_us: 50.0, ..PredictTable::default() };
    let disk = DiskTable {
        cache: Some(Size(8 << 20)),
        socket: Some(folder.join("a.sock")),
        queues: 2,
        ..DiskTable::new("a".to_owned(), 16 << 20)
    };
    let config = Config {
        slow: file("slow"),
        fast: file("fast"),
        cache: CacheTable { free_target: 300, ..CacheTable::default() },
        scheduler: SchedulerTable { slot_ms: 5.0, predict, ..SchedulerTable::default() },
        limits: Limits { max_request: Size(256 << 10), ..Limits::default() },
        ..Config::new(vec![disk])
    };
    fs::write(&path, config.text().unwrap()).unwrap();
    path
}

fn verified(machine: &mut dyn Machine, seed: u64) -> Measured {
    let spec = LoadSpec {
        outstanding: 8,
        ramp_ns: 0,
        // Long enough for a guest that hardly gets a processor while other tests run.
        time_ns: 3_000_000_000,
        verify: true,
        flush_every: Some(50),
        seed,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 50.0, 100.0)), DISK_BYTES)
    };
    let never = AtomicBool::new(false);
    or_mend(measure_observed(machine, spec, &[], TimeLimits::default(), &never)).1
}

#[test]
fn a_guest_on_a_fenced_disk_finds_what_it_wrote_also_after_another_daemon_took_over() {
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let config = configure(directory.path());
    or_mend(format(&or_mend(Config::load(&config)), false));
    let served = Served::start(&config);

    let adapter = find_adapter("vhost-user-blk").unwrap();
    let image = or_mend(GuestImage::new(&or_mend(find_kernel(None)), &[adapter]));
    let disk = GuestDisk {
        server: Some(directory.path().join("a.sock")),
        ..GuestDisk::new(adapter, directory.path().join("none"))
    };
    let facts = AcceleratorFacts { name: "tcg".into(), why: "a test".into() };
    let guest = GuestConfig::new(Accelerator::Tcg);
    let mut vm = Vm::new("fence", or_mend(Qemu::find()), image, facts, guest, disk);
    let mut machine = or_mend(vm.start());
    let first = verified(machine.as_mut(), 1).outcome;
    assert_eq!((first.errors, first.verify.unwrap().damaged()), (0, 0));

    drop(served);
    let served = Served::start(&config);
    let second = verified(machine.as_mut(), 2).outcome;
    assert!(second.total.operations > 0);
    assert_eq!((second.errors, second.verify.unwrap().damaged()), (0, 0));
    machine.shut_down();
    drop(served);
}

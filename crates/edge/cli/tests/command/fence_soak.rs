//! A fence that goes through everything in turn, with two guests' loads on it: kills, power failures, devices that fail for a while in each
//! way, disks that grow, come and go. After each, both disks hold what was flushed. Needs root and /dev/fuse; `make soak` does it more often.

use std::collections::BTreeMap;
use std::fs;
use std::process::Child;
use std::thread;
use std::time::Duration;

use fuser::Errno;

use crate::fence_serve::flushes;
use crate::power::Random;
use crate::power::disk::{PowerDisk, Work};
use crate::support::fence::{CACHED, Daemon, Fence};
use crate::support::wait_for;

const DEVICE_BYTES: usize = 64 << 20;
const DISKS: [&str; 2] = ["A", "B"];
/// Sizes of disk b, in MiB: it grows from the first, and is cut back beyond the second.
const SIZES_MIB: [u32; 2] = [16, 40];
const LOAD: [&str; 9] =
    ["--verify", "--read", "30", "--outstanding", "16", "--flush-every", "25", "--time", "600s"];
/// What fails for a while, on either device.
const FAULTS: [(&str, Work, Errno); 4] = [
    ("reads fail", Work::Read, Errno::EIO),
    ("writes fail", Work::Write, Errno::EIO),
    ("syncs fail", Work::Sync, Errno::EIO),
    ("it is full", Work::Write, Errno::ENOSPC),
];

struct Soak {
    fence: Fence,
    devices: [PowerDisk; 2],
    random: Random,
    size_mib: u32,
    /// What happened how often, and blocks that were found as they had to be.
    counts: BTreeMap<String, u64>,
}

impl Soak {
    fn new(seed: u64) -> Self {
        let devices = [0; 2].map(|_| PowerDisk::new(DEVICE_BYTES));
        let place = |disk: &PowerDisk| format!("file:{}", disk.path().display());
        let config =
            CACHED.replace("file:SLOW", &place(&devices[0])).replace("file:FAST", &place(&devices[1]));
        let fence = Fence::formatted(&config);
        Self { fence, devices, random: Random(seed), size_mib: SIZES_MIB[0], counts: BTreeMap::new() }
    }

    fn count(&mut self, what: impl Into<String>, times: u64) {
        *self.counts.entry(what.into()).or_default() += times;
    }

    fn done(&self, what: &str, more: &[&str]) {
        let done = self.fence.command(what, more);
        assert_eq!(done.code(), 0, "{what} {more:?}: {done:?}");
    }

    /// Loads on both disks, each of which has something to hold its disk to.
    fn begin_loads(&self) -> [Child; 2] {
        let ledger = |disk: &str| self.fence.path(&format!("{disk}.ledger"));
        let loads = DISKS.map(|disk| {
            let _ = fs::remove_file(ledger(disk));
            self.fence.begin_load(disk, &LOAD)
        });
        for disk in DISKS {
            wait_for("a flush", || (flushes(&ledger(disk)) > 0).then_some(()));
        }
        loads
    }

    fn pause(&mut self) {
        thread::sleep(Duration::from_millis(20 + self.random.next() % 400));
    }

    fn kill(&self, daemon: Daemon) {
        daemon.kill();
        self.devices.iter().for_each(PowerDisk::restore);
    }

    fn fail_power(&mut self, daemon: Daemon) {
        PowerDisk::fail(&self.devices, &mut self.random);
        self.kill(daemon);
        for file in fs::read_dir(self.fence.path(".")).unwrap().flatten() {
            if file.file_name().to_string_lossy().starts_with("virtbench-fence-") {
                fs::remove_file(file.path()).unwrap();
            }
        }
    }

    fn fail_device(&mut self, daemon: Daemon) {
        let (device, fault) = (self.random.below(2), self.random.below(FAULTS.len()));
        let (name, work, errno) = FAULTS[fault];
        self.devices[device].refuse_work(Some((work, errno)));
        self.pause();
        self.devices[device].refuse_work(None);
        self.pause();
        // What the daemon could not make stable it says; what was flushed before is there in any case.
        drop(daemon.stop());
        self.count(format!("{} device: {name}", ["slow", "fast"][device]), 1);
    }

    fn grow(&mut self, daemon: Daemon) {
        self.size_mib += 1;
        self.done("resize", &["b", "--size", &format!("{}MiB", self.size_mib)]);
        self.pause();
        self.kill(daemon);
        if self.size_mib >= SIZES_MIB[1] {
            self.size_mib = SIZES_MIB[0];
            self.done("resize", &["b", "--size", &format!("{}MiB", self.size_mib), "--force"]);
        }
    }

    /// Another disk while the others are used; then it goes, at work or after a kill.
    fn come_and_go(&mut self, daemon: Daemon) {
        let socket = self.fence.path("C");
        self.done("add", &["c", "--size", "4MiB", "--cache", "2MiB", "--socket", socket.to_str().unwrap()]);
        let load = self.fence.load(
            "C",
            &["--verify", "--read", "50", "--size", "4MiB", "--time", "200ms", "--flush-every", "9"],
        );
        assert_eq!(load.code(), 0, "{load:?}");
        if self.random.below(2) == 0 {
            self.kill(daemon);
            self.done("remove", &["c", "--force"]);
        } else {
            self.done("remove", &["c", "--force"]);
            self.pause();
            self.kill(daemon);
        }
    }

    /// One daemon's life and what comes after it.
    fn round(&mut self, round: u64) {
        let daemon = self.fence.serve();
        let loads = self.begin_loads();
        self.pause();
        let what = match round % 5 {
            0 => {
                self.kill(daemon);
                "kills"
            }
            1 => {
                self.fail_power(daemon);
                "power failures"
            }
            2 => {
                self.fail_device(daemon);
                "transient errors"
            }
            3 => {
                self.grow(daemon);
                "resizes under load, and kills"
            }
            _ => {
                self.come_and_go(daemon);
                "disks added and removed, and kills"
            }
        };
        for mut load in loads {
            load.kill().unwrap();
            load.wait().unwrap();
        }
        self.count(what, 1);
        let daemon = self.fence.serve();
        for disk in DISKS {
            let check = self.fence.load(disk, &["--verify-only"]);
            assert_eq!(check.code(), 0, "round {round}, {what}, disk {disk}: {check:?}\n{:?}", self.counts);
            let checked = check.json()["blocks_checked"].as_u64().unwrap();
            assert!(checked > 0, "round {round}, {what}, disk {disk}: {check:?}");
            self.count("flushed blocks that were there", checked);
        }
        let stopped = daemon.stop();
        assert_eq!(stopped.code(), 0, "round {round}: {stopped:?}");
        self.done("inspect", &["--data"]);
    }
}

#[test]
fn what_was_flushed_outlives_everything_in_turn() {
    let number =
        |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().expect(name));
    let (rounds, seed) = (number("VIRTBENCH_FENCE_ROUNDS", 5), number("VIRTBENCH_FENCE_SEED", 1));
    let mut soak = Soak::new(seed);
    for round in 0..rounds {
        soak.round(round);
    }
    for (what, times) in &soak.counts {
        eprintln!("{times} {what}");
    }
}

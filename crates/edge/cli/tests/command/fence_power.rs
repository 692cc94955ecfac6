//! Power failures under `virtbench fence serve`: whatever was flushed is there afterwards. Needs root and /dev/fuse.

use std::fs;
use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::power::Random;
use crate::power::disk::PowerDisk;
use crate::power::load::Client;
use crate::power::model::Model;
use crate::support::fence::{Daemon, Fence, PLAIN};
use crate::support::{virtbench, wait_for};

const DEVICE_BYTES: usize = 16 << 20;
const DISK_SECTORS: usize = 8192;
const CONNECTIONS: usize = 2;
const DISKS: [&str; 2] = ["a", "b"];

/// A scheduler, the devices it has, and whether they are used through the page cache, which takes parts of blocks.
#[derive(Debug, Clone, Copy)]
struct Way {
    scheduler: &'static str,
    slow: bool,
    fast: bool,
    device: &'static str,
    options: &'static str,
}

/// All schedulers, without a cache and with one, shared and for each.
fn ways() -> Vec<Way> {
    let mut ways = Vec::new();
    let mut add = |scheduler, devices: &[(bool, bool)]| {
        for &(slow, fast) in devices {
            let device = if ways.len() % 3 == 2 { "buffered" } else { "file" };
            ways.push(Way { scheduler, slow, fast, device, options: "" });
        }
    };
    add("HDD+NWC", &[(true, false)]);
    add("SSD+NWC", &[(false, true)]);
    for cached in ["Hybrid/Shared", "Hybrid/Shared+NWC", "Hybrid/Partitioned", "VirtualFence"] {
        add(cached, &[(true, true)]);
    }
    for any in ["fifo", "elevator", "token-bucket", "mclock", "fair-queue", "paced", "pass-through"] {
        add(any, &[(true, false), (true, true)]);
    }
    ways
}

/// A fence on devices whose power fails.
struct Victim {
    way: Way,
    fence: Fence,
    devices: Vec<PowerDisk>,
    models: [Mutex<Model>; 2],
    random: Random,
}

impl Victim {
    fn new(way: Way, seed: u64) -> Self {
        let devices: Vec<PowerDisk> = (0..2).map(|_| PowerDisk::new(DEVICE_BYTES)).collect();
        let fence = Fence::new(PLAIN);
        let models = [0, 1].map(|disk| Mutex::new(Model::new(disk, DISK_SECTORS)));
        let victim = Self { way, fence, devices, models, random: Random(seed) };
        victim.fence.configure(&victim.config());
        let format = victim.fence.command("format", &[]);
        assert_eq!(format.code(), 0, "{way:?}: {format:?}");
        victim
    }

    fn config(&self) -> String {
        let Way { scheduler, slow, fast, device, options } = self.way;
        let nbd = self.fence.path("nbd");
        let mut text = format!("[scheduler]\nname = \"{scheduler}\"\nslot_ms = 2.0\n");
        text += "[scheduler.predict]\nslow_knots = [[0, 0.1]]\nfast_per_io_us = 10.0\n";
        for (name, has, disk) in [("slow", slow, &self.devices[0]), ("fast", fast, &self.devices[1])] {
            if has {
                text += &format!("[{name}]\ndevice = \"{device}:{}{options}\"\n", disk.path().display());
            }
        }
        text += "[cache]\nfree_target = 40\nlow_watermark = 8\nscratch_blocks = 64\n";
        text += &format!("[limits]\nmax_request = \"64 KiB\"\n[nbd]\nlisten = \"unix:{}\"\n", nbd.display());
        for disk in DISKS {
            let socket = disk.to_uppercase();
            text += &format!("[[disk]]\nname = \"{disk}\"\nexport = \"{disk}\"\nsocket = \"{socket}\"\n");
            text += &format!("size = {}\ncache = \"1 MiB\"\n", DISK_SECTORS * 512);
            if slow && fast && disk == DISKS[0] {
                text += "bypass = \"16 KiB\"\n";
            }
        }
        text
    }

    /// A daemon whose exports are there too.
    fn serve(&self) -> Daemon {
        let daemon = self.fence.serve();
        wait_for("the exports", || UnixStream::connect(self.fence.path("nbd")).ok());
        daemon
    }

    /// Whatever the disks contain is what they may contain, or what is wrong.
    fn check(&self) -> Result<(), String> {
        let nbd = self.fence.path("nbd");
        thread::scope(|scope| {
            for (name, model) in DISKS.iter().zip(&self.models) {
                let nbd = &nbd;
                scope.spawn(move || Client::connect(nbd, name, model, 0, 1).check());
            }
        });
        let wrong = self.models.iter().find_map(|model| model.lock().unwrap().wrong.clone());
        wrong.map_or(Ok(()), Err)
    }

    /// One daemon's life, from start to power failure.
    fn fail(&mut self) -> Result<(), String> {
        if self.random.below(8) == 0 {
            // In the middle of its start.
            let config = self.fence.path("fence.toml");
            let mut child = virtbench().args(["fence", "serve", config.to_str().unwrap()]).spawn().unwrap();
            thread::sleep(Duration::from_millis(self.random.next() % 150));
            PowerDisk::fail(&self.devices, &mut self.random);
            child.kill().unwrap();
            child.wait().unwrap();
            self.restore();
            return Ok(());
        }
        let daemon = self.serve();
        self.check()?;
        let (failing, nbd) = (AtomicBool::new(false), self.fence.path("nbd"));
        thread::scope(|scope| {
            for (name, model) in DISKS.iter().zip(&self.models) {
                for place in 0..CONNECTIONS {
                    let mut random = Random(self.random.next());
                    let mut client = Client::connect(&nbd, name, model, place, CONNECTIONS);
                    let failing = &failing;
                    scope.spawn(move || {
                        assert!(client.run(&mut random, failing).is_err());
                        assert!(failing.load(Ordering::SeqCst), "the daemon ended by itself");
                    });
                }
            }
            thread::sleep(Duration::from_millis(5 + self.random.next() % 120));
            failing.store(true, Ordering::SeqCst);
            PowerDisk::fail(&self.devices, &mut self.random);
            daemon.kill();
        });
        self.restore();
        Ok(())
    }

    /// What was in memory is gone: a boot begins.
    fn restore(&self) {
        self.devices.iter().for_each(PowerDisk::restore);
        for file in fs::read_dir(self.fence.path(".")).unwrap().flatten() {
            if file.file_name().to_string_lossy().starts_with("virtbench-fence-") {
                fs::remove_file(file.path()).unwrap();
            }
        }
    }

    /// Number of sectors that were found as they had to be.
    fn end(self) -> Result<u64, String> {
        let daemon = self.serve();
        self.check()?;
        assert_eq!(daemon.stop().code(), 0);
        if self.way.slow && self.way.fast {
            let inspected = self.fence.command("inspect", &["--data"]);
            assert_eq!(inspected.code(), 0, "{inspected:?}");
        }
        Ok(self.models.iter().map(|model| model.lock().unwrap().checked).sum())
    }
}

#[test]
fn what_was_flushed_outlives_power_failures_under_every_scheduler() {
    // `make soak` does it more often.
    let number =
        |name: &str, otherwise| std::env::var(name).map_or(otherwise, |text| text.parse().expect(name));
    let ways = ways();
    let failures = number("VIRTBENCH_POWER_FAILURES", ways.len() as u64);
    let seed = number("VIRTBENCH_POWER_SEED", 1);
    let (mut failed, mut checked) = (0, 0);
    for (place, &way) in ways.iter().enumerate() {
        // As many each, the first ones one more.
        let rounds = (failures + ways.len() as u64 - 1 - place as u64) / ways.len() as u64;
        let run = || {
            let mut victim = Victim::new(way, seed << 32 | place as u64);
            (0..rounds).try_for_each(|_| victim.fail())?;
            victim.end()
        };
        let found = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("see above".to_owned()));
        let found = found.unwrap_or_else(|wrong| panic!("{way:?}, VIRTBENCH_POWER_SEED={seed}: {wrong}"));
        failed += rounds;
        checked += found;
        eprintln!("{way:?}: {rounds} power failures, {found} flushed sectors there");
    }
    assert!(failures < 20 || checked > 0, "nothing was flushed");
    eprintln!("{failed} power failures: {checked} flushed sectors found");
}

/// A device whose flushes do nothing: the test above would not miss it.
#[test]
fn a_daemon_that_does_not_sync_is_found_out() {
    let way = Way {
        scheduler: "fifo",
        slow: true,
        fast: false,
        device: "ssd",
        options: "?read=1us&write=1us&sync=off",
    };
    let mut victim = Victim::new(way, 7);
    let lost = (0..100).find_map(|_| victim.fail().err());
    let lost = lost.expect("nothing was lost in a hundred power failures");
    assert!(lost.contains("is none of"), "{lost}");
}

//! Resizing that is cut off after any of its steps, and then completed, loses nothing.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use crate::common;

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use common::success;
use tempfile::TempDir;
use virtbench_fence::catalogue::HYBRID_PARTITIONED;
use virtbench_fence_daemon::admin::{Change, DiskEdit, ResizeError, ResizeStep, RotationEdit, edit, resize};
use virtbench_fence_daemon::config::{CacheTable, Config, DiskTable, Limits, Size};
use virtbench_fence_daemon::runtime::Stopper;
use virtbench_fence_daemon::{Daemon, format};

const MIB: usize = 1 << 20;
const OLD: usize = 8 * MIB;
const NEW: usize = 12 * MIB;

struct World {
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        let path = |name: &str| folder.path().join(name);
        for device in ["slow", "fast"] {
            // What is there already must never be seen.
            fs::write(path(device), vec![0xee; 64 * MIB]).unwrap();
        }
        let disk = |name: &str| DiskTable {
            cache: Some(Size(4 * MIB as u64)),
            ..common::exported(name, 8 * MIB as u64)
        };
        let config = Config {
            slow: Some(common::file(&path("slow"))),
            fast: Some(common::file(&path("fast"))),
            cache: CacheTable { free_target: 300, ..CacheTable::default() },
            scheduler: common::scheduler(&HYBRID_PARTITIONED),
            limits: Limits { max_request: Size(256 << 10), ..Limits::default() },
            nbd: common::nbd(path("nbd")),
            ..Config::new(vec![disk("a"), disk("b")])
        };
        fs::write(path("fence.toml"), config.text().unwrap()).unwrap();
        let world = Self { folder };
        format(&world.config(), true).unwrap();
        world
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn config(&self) -> Config {
        Config::load(Path::new(&self.path("fence.toml"))).unwrap()
    }

    /// Something to do while it is served.
    fn served(&self, act: impl FnOnce(&dyn Fn(&str) -> String)) {
        let (config, stopper) = (self.config(), Stopper::new().unwrap());
        let (ready, started) = mpsc::channel();
        let ours = stopper.clone();
        let thread = std::thread::spawn(move || {
            let daemon = Daemon::start(&config, ours).unwrap();
            ready.send(()).unwrap();
            daemon.run().unwrap();
        });
        started.recv_timeout(Duration::from_secs(60)).unwrap();
        act(&|export| std::format!("nbd+unix:///{export}?socket={}", self.path("nbd")));
        stopper.stop();
        thread.join().unwrap();
    }
}

fn pattern(seed: usize) -> Vec<u8> {
    (0..OLD).map(|at| (at / 512 * 31 + at % 251 + seed) as u8).collect()
}

#[test]
fn what_was_answered_survives_a_stop_without_a_flush() {
    let world = World::new();
    let (a, back) = (world.path("a"), world.path("back"));
    fs::write(&a, pattern(1)).unwrap();
    world.served(|uri| drop(success("nbdcopy", "libnbd-bin", &[&a, &uri("a")])));
    world.served(|uri| drop(success("nbdcopy", "libnbd-bin", &[&uri("a"), &back])));
    assert!(fs::read(&back).unwrap() == pattern(1));
}

#[test]
fn a_resize_that_is_cut_off_anywhere_is_completed_and_loses_nothing() {
    let mut steps = Vec::new();
    for stop_after in 1.. {
        let world = World::new();
        let file = |name: &str, bytes: &[u8]| {
            fs::write(world.path(name), bytes).unwrap();
            world.path(name)
        };
        let (a, b) = (file("a", &pattern(1)), file("b", &pattern(2)));
        world.served(|uri| {
            success("nbdcopy", "libnbd-bin", &["--flush", &a, &uri("a")]);
            success("nbdcopy", "libnbd-bin", &["--flush", &b, &uri("b")]);
        });
        let change = Change {
            disk: "a".into(),
            size_bytes: Some(NEW as u64),
            cache_bytes: Some(6 << 20),
            give_up_end: false,
        };
        steps.clear();
        let cut_off = resize(&world.config(), &change, |step| {
            steps.push(step);
            steps.len() < stop_after
        });
        let whole = cut_off.is_ok();
        if !whole {
            assert!(matches!(cut_off, Err(ResizeError::Interrupted)), "{cut_off:?}");
            resize(&world.config(), &change, |_| true).unwrap();
        }
        let values = DiskEdit {
            disk: "a".into(),
            size_bytes: change.size_bytes,
            cache_bytes: change.cache_bytes,
            ..DiskEdit::default()
        };
        edit(Path::new(&world.path("fence.toml")), &[values], None, RotationEdit::default()).unwrap();
        world.served(|uri| {
            let back = world.path("back");
            success("nbdcopy", "libnbd-bin", &[&uri("a"), &back]);
            let found = fs::read(&back).unwrap();
            assert_eq!(found.len(), NEW);
            assert!(found[..OLD] == pattern(1), "after {steps:?}");
            assert!(found[OLD..].iter().all(|byte| *byte == 0), "somebody else's bytes after {steps:?}");
            success("nbdcopy", "libnbd-bin", &[&uri("b"), &back]);
            assert!(fs::read(&back).unwrap() == pattern(2), "after {steps:?}");
        });
        if whole {
            break;
        }
    }
    assert!(
        matches!(
            steps[..],
            [
                ResizeStep::WrittenBack(1..),
                ResizeStep::Moved,
                ResizeStep::Zeroed,
                ResizeStep::Cache,
                ResizeStep::Label
            ]
        ),
        "{steps:?}"
    );
}

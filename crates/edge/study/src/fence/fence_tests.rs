//! Disks as guests of a study get them, asked over NBD in their place.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use virtbench_engine::{Control, Target, TargetRequest};
use virtbench_fence::catalogue::{HYBRID_SHARED, VIRTUAL_FENCE};
use virtbench_lab::Filesystem;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::*;
use crate::disks::disk::DiskError;
use crate::setup::Setup;

const DISK_BYTES: u64 = 8 << 20;

struct Lab {
    folder: tempfile::TempDir,
}

impl Lab {
    fn new() -> Self {
        Self { folder: tempfile::TempDir::new_in("/var/tmp").unwrap() }
    }

    fn serve(&self, setup: &str, contents: Contents, size_bytes: u64) -> Result<FenceDisks, FenceError> {
        let setup = Setup::parse(setup).unwrap();
        let crate::Backing::Fence(options) = setup.backing else { panic!("{setup}") };
        let names = ["vm1".to_owned(), "vm2".to_owned()];
        let stop = AtomicBool::new(false);
        let toml = self.folder.path().join("fence.toml");
        let request = FenceRequest {
            folder: self.folder.path(),
            run_name: "test",
            adapter: setup.adapter,
            settings: &setup.settings,
            options: &options,
            names: &names,
            size_bytes,
            contents,
            images: &[],
            warm: None,
            configuration: Some(&toml),
        };
        FenceDisks::prepare(&request, &stop, &mut |_, _, _| {})
    }
}

fn read_at_random(disk: &GuestDisk, size_bytes: u64, time_ms: u64) -> virtbench_record::LoadOutcome {
    let socket = disk.server.clone().unwrap();
    let export = disk.export.clone().unwrap();
    let request = TargetRequest {
        path: format!("nbd+unix:///{export}?socket={}", socket.display()).into(),
        size_bytes: None,
        direct: true,
        reads: true,
        writes: false,
        allow_overwrite: false,
    };
    let target = Target::open(&request, |_, _| true).unwrap();
    let spec = LoadSpec {
        outstanding: 1,
        ramp_ns: 0,
        time_ns: time_ms * 1_000_000,
        interval_ns: time_ms * 1_000_000,
        seed: 77,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), size_bytes)
    };
    virtbench_engine::run(&spec, &target, &Control::new(1), 0, |_| ()).unwrap()
}

#[test]
fn a_disk_on_an_emulated_hard_disk_takes_a_hard_disk_s_time() {
    let lab = Lab::new();
    let disks = lab.serve("virtio-blk@fence,scheduler=pass-through", Contents::Written, DISK_BYTES).unwrap();
    let outcome = read_at_random(&disks.disks()[1], DISK_BYTES, 1000);
    // Within one of two partitions side by side a seek takes 1 ms at least, and half a turn 4.17 ms. There is no upper bound
    // that a busy machine keeps; that a file takes a fiftieth of the time is what is told apart.
    let mean_ms = outcome.total.latency_ns.map(|summary| summary.mean / 1e6).unwrap();
    assert!(mean_ms > 5.0, "{mean_ms} ms");
    assert_eq!(outcome.errors, 0);
    drop(disks);
    let left: Vec<_> =
        fs::read_dir(lab.folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["fence.toml"], "the devices go with the daemon");
}

#[test]
fn caches_are_warm_when_the_daemon_that_is_measured_starts() {
    for scheduler in [&VIRTUAL_FENCE, &HYBRID_SHARED] {
        let lab = Lab::new();
        let setup = format!("virtio-blk@fence,scheduler={scheduler:?},cache=50%,slow=file,fast=file");
        let disks = lab.serve(&setup, Contents::Written, DISK_BYTES).unwrap();
        let address = free_address();
        // The same devices once more, with figures.
        let config = Config::load(&lab.folder.path().join("fence.toml")).unwrap();
        let config = Config { metrics: Some(address), ..config };
        let FenceDisks { disks: guests, _served: served, _sockets: sockets, _devices: devices, .. } = disks;
        drop(served);
        let served = Served::start(config).unwrap();
        assert!(served.lines.iter().any(|line| line.contains("figures")), "{:?}", served.lines);
        read_at_random(&guests[0], DISK_BYTES, 1500);
        let [hits, misses] = reads(address);
        let rate = hits / (hits + misses);
        // A cache that is shared becomes more and more the only reader's.
        let most = if *scheduler == VIRTUAL_FENCE { 0.65 } else { 1.0 };
        assert!((0.35..most).contains(&rate), "{scheduler:?}: {rate} of {}", hits + misses);
        drop((served, sockets, devices));
    }
}

/// Blocks read from the cache and past it.
fn reads(address: SocketAddr) -> [f64; 2] {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    ["hit", "miss"].map(|state| {
        let of = |line: &&str| line.contains("cache_reads_total") && line.contains(&format!("\"{state}\""));
        text.lines().filter(of).map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
    })
}

fn free_address() -> SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn each_disk_has_a_file_system_of_its_own() {
    let lab = Lab::new();
    let size_bytes = 64 << 20;
    let filesystem = Contents::Empty(Some(Filesystem::Ext4));
    let disks = lab.serve("virtio-blk@fence,scheduler=fifo,slow=file", filesystem, size_bytes).unwrap();
    let home = fs::File::open(&disks.disks()[0].path).unwrap();
    let magic = |at: u64| {
        let mut bytes = [0; 2];
        std::os::unix::fs::FileExt::read_exact_at(&home, &mut bytes, at + 1080).unwrap();
        u16::from_le_bytes(bytes)
    };
    assert_eq!([magic(1 << 20), magic((1 << 20) + size_bytes)], [0xEF53; 2]);
}

#[test]
fn a_folder_that_another_run_uses_is_left_alone() {
    let lab = Lab::new();
    let setup = "vhost-user-blk@fence,scheduler=fifo";
    let first = lab.serve(setup, Contents::Written, DISK_BYTES).unwrap();
    let error = lab.serve(setup, Contents::Written, DISK_BYTES).map(drop).unwrap_err();
    assert!(matches!(error, FenceError::Disk(DiskError::InUse(_))), "{error}");
    assert!(first.disks()[0].server.as_ref().unwrap().ends_with("vm1.sock"));
}

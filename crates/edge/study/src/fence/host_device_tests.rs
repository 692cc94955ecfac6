//! Block devices of the host over exports of a daemon, for real: needs root, FUSE and loop devices.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Instant;

use rustix::fs::OFlags;
use virtbench_engine::{Control, Target, TargetRequest};
use virtbench_fence::catalogue::PASS_THROUGH;
use virtbench_fence_daemon::config::{
    Config, DeviceSpec, DeviceTable, DiskTable, Limits, Listen, NbdTable, SchedulerTable, Size,
};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::*;
use crate::fence::served::Served;

const DISK_BYTES: u64 = 16 << 20;

/// A daemon over a plain file, with one export.
fn served(folder: &Path, name: &str) -> (Served, PathBuf) {
    let file = folder.join("slow.img");
    fs::File::create(&file).unwrap().set_len(DISK_BYTES + (1 << 20)).unwrap();
    let socket = folder.join("nbd.sock");
    let disk = DiskTable {
        export: Some(name.to_owned()),
        socket: Some(folder.join("a.sock")),
        ..DiskTable::new(name.to_owned(), DISK_BYTES)
    };
    let config = Config {
        slow: Some(DeviceTable::new(DeviceSpec::File(file))),
        scheduler: SchedulerTable { name: &PASS_THROUGH, ..SchedulerTable::default() },
        limits: Limits { max_request: Size(64 << 10), ..Limits::default() },
        nbd: Some(NbdTable::new(vec![Listen::Unix(socket.clone())])),
        ..Config::new(vec![disk])
    };
    config.check().unwrap();
    virtbench_fence_daemon::format(&config, true).unwrap();
    (Served::start(config).unwrap(), socket)
}

fn loaded(device: &Path) -> virtbench_record::LoadOutcome {
    let request = TargetRequest {
        path: device.to_owned(),
        size_bytes: None,
        direct: true,
        reads: true,
        writes: true,
        allow_overwrite: true,
    };
    let target = Target::open(&request, |_, _| true).unwrap();
    let spec = LoadSpec {
        outstanding: 32,
        ramp_ns: 0,
        time_ns: 500_000_000,
        interval_ns: 500_000_000,
        verify: true,
        flush_every: Some(50),
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 50.0, 100.0)), DISK_BYTES)
    };
    virtbench_engine::run(&spec, &target, &Control::new(1), 0, |_| ()).unwrap()
}

/// Whether the loop device still has something behind it.
fn is_attached(node: &Path) -> bool {
    Path::new("/sys/block").join(node.file_name().unwrap()).join("loop/backing_file").exists()
}

#[test]
fn an_export_is_a_block_device_that_keeps_what_is_written_and_goes_when_it_is_dropped() {
    let folder = tempfile::TempDir::new_in("/var/tmp").unwrap();
    let (served, socket) = served(folder.path(), "vm1");
    let device = HostDevice::attach(&socket, "vm1").unwrap_or_else(|error| panic!("{error}"));
    let node = device.path().to_owned();
    let outcome = loaded(&node);
    assert!(outcome.total.operations > 0 && outcome.errors == 0, "{outcome:?}");
    assert_eq!(outcome.verify.unwrap().damaged(), 0);
    // Larger than what the daemon takes at once, and read back by the other way to the same blocks.
    let written: Vec<u8> = (0..1u32 << 18).flat_map(u32::to_le_bytes).collect();
    OpenOptions::new().write(true).open(&node).unwrap().write_all(&written).unwrap();
    drop(device);
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains("virtbench"), "{mounts}");
    let limit = Instant::now() + Duration::from_secs(20);
    while is_attached(&node) {
        assert!(Instant::now() < limit, "{} is left", node.display());
        thread::sleep(Duration::from_millis(10));
    }
    let again = HostDevice::attach(&socket, "vm1").unwrap();
    let mut read = vec![0; written.len()];
    let reader = OpenOptions::new().read(true).open(again.path()).unwrap();
    reader.read_exact_at(&mut read, 0).unwrap();
    assert!(read == written);
    drop((reader, again, served));
}

#[test]
fn a_daemon_that_goes_makes_errors_and_no_hanging() {
    let folder = tempfile::TempDir::new_in("/var/tmp").unwrap();
    let (served, socket) = served(folder.path(), "vm1");
    let device = HostDevice::attach(&socket, "vm1").unwrap();
    drop(served);
    let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap();
    let opened = OpenOptions::new().read(true).custom_flags(direct).open(device.path()).unwrap();
    let mut buffer = vec![0u8; 8192];
    let start = buffer.as_ptr().align_offset(4096);
    assert!(opened.read_at(&mut buffer[start..start + 4096], 0).is_err());
}

#[test]
fn an_export_that_is_none_is_named() {
    let folder = tempfile::TempDir::new_in("/var/tmp").unwrap();
    let (_served, socket) = served(folder.path(), "vm1");
    let error = HostDevice::attach(&socket, "vm2").unwrap_err().to_string();
    assert!(error.contains("vm2"), "{error}");
}

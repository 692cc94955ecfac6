//! A guest whose disk grows under it, and commands that end in the middle of a change. Needs QEMU, a guest kernel and
//! libnbd-bin.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use crate::support::fence::{CACHED, Daemon, Fence, refused};
use crate::support::finish;
use virtbench_lab::{
    Accelerator, Environment, GuestConfig, GuestDisk, GuestImage, Qemu, TimeLimits, Vm, find_adapter,
    find_kernel, measure,
};
use virtbench_record::AcceleratorFacts;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

const MIB: u64 = 1 << 20;

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

/// Reads and writes everywhere up to `region_bytes`, checking what is read.
fn spec(region_bytes: u64, time_ns: u64) -> LoadSpec {
    LoadSpec {
        ramp_ns: 0,
        time_ns,
        verify: true,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 30.0, 100.0)), region_bytes)
    }
}

#[test]
fn a_guest_sees_its_disk_grow_and_writes_at_the_new_end() {
    let fence = Fence::formatted(CACHED);
    let daemon = fence.serve();
    let adapter = find_adapter("vhost-user-blk").unwrap();
    let image = or_mend(GuestImage::new(&or_mend(find_kernel(None)), &[adapter]));
    let disk = GuestDisk { server: Some(fence.path("B")), ..GuestDisk::new(adapter, fence.path("none")) };
    let facts = AcceleratorFacts { name: "tcg".into(), why: "a test".into() };
    let config = GuestConfig { boot_limit: Duration::from_secs(180), ..GuestConfig::new(Accelerator::Tcg) };
    let mut vm = Vm::new("live", or_mend(Qemu::find()), image, facts, config, disk);
    let mut machine = or_mend(vm.start());
    let limits = TimeLimits { prepare: Duration::from_secs(180), grace: Duration::from_secs(180) };
    let never = AtomicBool::new(false);

    let mut load = |region_bytes: u64, time_s: u64| {
        let spec = spec(region_bytes, time_s * 1_000_000_000);
        measure(machine.as_mut(), spec, limits, &never).map(|(_, measured)| measured.outcome)
    };
    // The guest's own kernel says how large its disk is, in /sys/block/vda/size and to a program that opens it.
    let refused = load(24 * MIB, 1).unwrap_err().to_string();
    assert!(refused.contains("16"), "{refused}");

    // A load of its present size runs while it grows.
    let during = thread::scope(|scope| {
        let grows = scope.spawn(|| {
            thread::sleep(Duration::from_secs(2));
            let done = fence.command("resize", &["b", "--size", "24MiB"]);
            assert_eq!(done.code(), 0, "{done:?}");
            assert!(done.stderr.contains("the daemon serves it"), "{done:?}");
        });
        let during = or_mend(load(16 * MIB, 6));
        grows.join().unwrap();
        during
    });
    assert_eq!(during.errors, 0, "{during:?}");
    let grown = or_mend(load(24 * MIB, 4));
    assert!(grown.errors == 0 && grown.write.operations > 0, "{grown:?}");
    let beyond = load(25 * MIB, 1).unwrap_err().to_string();
    assert!(beyond.contains("24"), "{beyond}");
    machine.shut_down();

    assert!(fs::read_to_string(fence.path("fence.toml")).unwrap().contains("24 MiB"));
    assert_eq!(daemon.stop().code(), 0);
    let inspected = fence.command("inspect", &["--data"]);
    assert_eq!(inspected.code(), 0, "{inspected:?}");
    drop(fence.serve());
}

/// Asks as `fence resize` does, and kills the daemon after so many lines of the answer.
fn cut_off(fence: &Fence, daemon: Daemon, lines: usize) {
    let mut client = UnixStream::connect(fence.path("A.control")).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let question = r#"{"resize":{"disk":"b","size_bytes":25165824,"cache_bytes":null,"give_up_end":false}}"#;
    writeln!(client, "{question}").unwrap();
    let mut answer = BufReader::new(client);
    for _ in 0..lines {
        let mut line = String::new();
        answer.read_line(&mut line).unwrap();
        assert!(line.contains("step") || line.contains("done"), "{line}");
    }
    daemon.kill();
}

#[test]
fn a_daemon_killed_while_a_disk_grows_loses_nothing_and_the_same_command_completes_it() {
    for lines in 0..=4 {
        let fence = Fence::formatted(CACHED);
        let daemon = fence.serve();
        // Flushed, and in the cache alone.
        let write = ["--verify", "--read", "0", "--time", "300ms", "--size", "1MiB", "--flush-every", "20"];
        assert_eq!(fence.load("B", &write).code(), 0);
        cut_off(&fence, daemon, lines);
        let done = fence.command("resize", &["b", "--size", "24MiB"]);
        assert_eq!(done.code(), 0, "after {lines}: {done:?}");
        let found = fence.command("inspect", &["--data"]);
        assert_eq!(found.code(), 0, "after {lines}: {found:?}");
        let daemon = fence.serve();
        assert_eq!(fence.load("B", &["--verify-only", "--size", "1MiB"]).code(), 0, "after {lines}");
        assert_eq!(fence.load("B", &["--verify", "--size", "24MiB", "--time", "300ms"]).code(), 0);
        assert_eq!(daemon.stop().code(), 0);
    }
}

#[test]
fn a_confined_daemon_grows_disks_and_gives_slots_anew_under_load() {
    let slots =
        CACHED.replace("Hybrid/Partitioned", "VirtualFence").replace("[limits]", "slot_ms = 10.0\n[limits]");
    let fence = Fence::formatted(&slots);
    let daemon = fence.serve();
    let text = || fs::read_to_string(fence.path("fence.toml")).unwrap();
    let load = fence.begin_load("A", &["--verify", "--time", "3s", "--size", "8MiB"]);
    for (given, size) in [("b=2", "20MiB"), ("b=3", "22MiB"), ("b=1", "24MiB")] {
        let done = fence.command("reslot", &["--slots", given, "--slot-ms", "8"]);
        assert_eq!(done.code(), 0, "{done:?}");
        assert!(done.stderr.contains("from its next rotation on"), "{done:?}");
        let done = fence.command("resize", &["b", "--size", size]);
        assert_eq!(done.code(), 0, "{done:?}");
    }
    let loaded = finish(load);
    assert_eq!(loaded.code(), 0, "{loaded:?}");
    assert!(text().contains("size = \"24 MiB\"") && text().contains("slot_ms = 8"), "{}", text());
    assert_eq!(fence.load("B", &["--verify", "--size", "24MiB", "--time", "300ms"]).code(), 0);

    refused(&fence.command("resize", &["a", "--size", "20MiB"]), 3, "stop the daemon");
    refused(&fence.command("resize", &["b", "--size", "16MiB", "--force"]), 3, "stop the daemon");
    refused(&fence.command("resize", &["b", "--size", "16MiB"]), 2, "--force");
    refused(&fence.command("resize", &["b", "--cache", "6MiB"]), 3, "stop the daemon");
    refused(&fence.command("reslot", &["--slots", "b=0"]), 2, "none of the");
    assert_eq!(daemon.stop().code(), 0);
    let after = fence.command("reslot", &["--slots", "b=2"]);
    assert!(after.code() == 0 && after.stderr.contains("the next daemon"), "{after:?}");
    drop(fence.serve());
}

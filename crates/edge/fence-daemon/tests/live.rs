//! A disk that grows and slots that change while they are used, by a driver and NBD clients of ours.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use crate::common;
use crate::driver;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use common::{Daemon, success};
use driver::{Client, STATUS};
use tempfile::TempDir;
use vhost::vhost_user::VhostUserFrontend;
use vhost::vhost_user::message::VhostUserConfigFlags;
use virtbench_fence::catalogue::{HDD_SLOTS, PASS_THROUGH};
use virtbench_fence_daemon::admin::{Change, DiskEdit, ResizeStep, RotationEdit};
use virtbench_fence_daemon::config::{Config, DeviceSpec, DeviceTable, DiskTable, SchedulerTable};
use virtbench_fence_daemon::control::{ControlError, Question, Refusal, ask};
use vm_memory::{Bytes, GuestAddress};

const LIMIT: Duration = Duration::from_secs(60);
const MIB: u64 = 1 << 20;
/// Sectors of a megabyte.
const SECTORS: u64 = 2048;

/// Disks `a` and `b` of 1 MiB each. There is room behind `b` alone.
fn serve(scheduler: SchedulerTable, slow: Option<DeviceSpec>) -> (Daemon, PathBuf) {
    let folder = TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("slow"), vec![0xee; 8 << 20]).unwrap();
    let disk =
        |name: &str| DiskTable { socket: Some(path(name)), queues: 1, ..common::exported(name, 1 << 20) };
    let config = Config {
        control: Some(path("control")),
        slow: Some(slow.map_or_else(|| common::file(&path("slow")), DeviceTable::new)),
        scheduler,
        nbd: common::nbd(path("nbd")),
        ..Config::new(vec![disk("a"), disk("b")])
    };
    virtbench_fence_daemon::format(&config, true).unwrap();
    let control = path("control");
    (Daemon::of_config(folder, config, false).unwrap(), control)
}

fn resize(
    control: &Path,
    disk: &str,
    size_bytes: Option<u64>,
    cache_bytes: Option<u64>,
) -> Result<Vec<ResizeStep>, ControlError> {
    let change = Change { disk: disk.into(), size_bytes, cache_bytes, give_up_end: true };
    let mut steps = Vec::new();
    assert!(ask(control, &Question::Resize(change), |step| steps.push(step))?, "nobody listens");
    Ok(steps)
}

fn reslot(control: &Path, slot_ms: f64) {
    let rotation = RotationEdit { slot_ms: Some(slot_ms), ..RotationEdit::default() };
    let disks = vec![DiskEdit { disk: "a".into(), slots: Some(1), ..DiskEdit::default() }];
    assert!(ask(control, &Question::Reslot { disks, rotation }, |_| ()).unwrap());
}

fn sectors(driver: &mut Client) -> u64 {
    let (_, config) = driver.frontend.get_config(0, 8, VhostUserConfigFlags::empty(), &[0; 8]).unwrap();
    u64::from_le_bytes(config.try_into().unwrap())
}

/// Waits for word of another configuration.
fn hears(news: &mut UnixStream) {
    news.set_read_timeout(Some(LIMIT)).unwrap();
    let mut message = [0; 12];
    news.read_exact(&mut message).unwrap();
    // VHOST_USER_BACKEND_CONFIG_CHANGE_MSG, version 1, nothing behind it.
    assert_eq!(message, [2, 1, 0].map(u32::to_ne_bytes).concat()[..]);
}

#[test]
fn a_disk_grows_under_its_driver_which_hears_of_it() {
    let (daemon, control) = serve(common::scheduler(&PASS_THROUGH), None);
    assert_eq!(fs::metadata(&control).unwrap().permissions().mode() & 0o777, 0o600);
    let (mut news, theirs) = UnixStream::pair().unwrap();
    let mut driver = Client::listening(&daemon.path("b"), Some(&theirs));
    // What it knows may be older than the daemon.
    hears(&mut news);
    assert_eq!((sectors(&mut driver), driver.ask(1, 2 * SECTORS - 8)), (SECTORS, 1), "beyond the end");
    let size = |export: &str| success("nbdinfo", "libnbd-bin", &["--size", &daemon.uri(export)]);
    assert_eq!(size("b").trim(), "1048576");

    let steps = resize(&control, "b", Some(2 * MIB), None).unwrap();
    assert_eq!(steps, [ResizeStep::Zeroed, ResizeStep::Label]);
    hears(&mut news);
    assert_eq!(sectors(&mut driver), 2 * SECTORS);
    assert_eq!(driver.ask(0, 2 * SECTORS - 8), 0);
    let mut found = [1; 4096];
    driver.map.read_slice(&mut found, GuestAddress(driver::DATA)).unwrap();
    assert_eq!(found, [0; 4096], "somebody else's bytes");
    assert_eq!(driver.ask(1, 2 * SECTORS - 8), 0, "a write at the new end");
    assert_eq!(driver.ask(1, 2 * SECTORS), 1, "beyond the new end");
    assert_eq!(size("b").trim(), "2097152");
    assert_eq!(size("a").trim(), "1048576");
    assert_eq!(resize(&control, "b", Some(2 * MIB), None).unwrap(), [], "it is done");

    // What the next daemon finds is what was told.
    let folder = daemon.stop();
    let path = folder.path().join("fence.toml");
    let edit = DiskEdit { disk: "b".into(), size_bytes: Some(2 * MIB), ..DiskEdit::default() };
    virtbench_fence_daemon::admin::edit(&path, &[edit], None, RotationEdit::default()).unwrap();
    let text = fs::read_to_string(&path).unwrap();
    let daemon = Daemon::of_text(folder, &text, false).unwrap();
    assert_eq!(Client::connect(&daemon.path("b")).ask(0, 2 * SECTORS - 8), 0);
}

#[test]
fn what_cannot_be_done_while_guests_use_it_is_refused_and_changes_nothing() {
    let (daemon, control) = serve(common::scheduler(&PASS_THROUGH), None);
    let before = fs::read(daemon.path("slow")).unwrap();
    let refused =
        |disk: &str, size: Option<u64>, cache: Option<u64>| match resize(&control, disk, size, cache) {
            Err(ControlError::Refused { kind, why }) => (kind, why),
            other => panic!("{other:?}"),
        };
    for (disk, size, cache, kind, says) in [
        ("a", Some(2 * MIB), None, Refusal::Target, "would have to move: stop the daemon"),
        ("b", Some(MIB / 2), None, Refusal::Target, "cannot become smaller while it is served"),
        ("b", None, Some(MIB), Refusal::Target, "keeps its part of the cache"),
        ("b", Some(64 * MIB), None, Refusal::Target, "the largest free one has"),
        ("c", Some(2 * MIB), None, Refusal::NoDisk, "there is no disk c"),
        ("b", Some(2 * MIB + 1), None, Refusal::Value, "not a multiple of 4096"),
    ] {
        let (found, why) = refused(disk, size, cache);
        assert!(found == kind && why.contains(says), "{why}");
    }
    assert!(before == fs::read(daemon.path("slow")).unwrap());
}

#[test]
fn a_control_client_that_misbehaves_harms_nobody() {
    let (daemon, control) = serve(common::scheduler(&PASS_THROUGH), None);
    let _silent = UnixStream::connect(&control).unwrap();
    for bytes in [&b"\n"[..], b"{}\n", b"{\"resize\":{\"disk\":5}}\n", &[b'x'; 200 << 10], &[0xff, b'\n']] {
        let mut client = UnixStream::connect(&control).unwrap();
        client.set_read_timeout(Some(LIMIT)).unwrap();
        // It may close before all of it was sent.
        let _ = client.write_all(bytes);
        let mut answer = String::new();
        let _ = client.read_to_string(&mut answer);
        assert!(answer.is_empty() || answer.contains("refused"), "{answer}");
    }
    let mut driver = Client::connect(&daemon.path("b"));
    assert_eq!(driver.ask(0, 0), 0);
    resize(&control, "b", Some(2 * MIB), None).unwrap();
    assert_eq!(driver.ask(0, SECTORS), 0);
}

#[test]
fn slots_change_under_load_from_the_next_rotation_on() {
    let (daemon, control) = serve(
        SchedulerTable { slot_ms: 5.0, ..common::scheduler(&HDD_SLOTS) },
        Some(DeviceSpec::Null { size_bytes: 8 << 20 }),
    );
    let (mut a, mut b) = (Client::connect(&daemon.path("a")), Client::connect(&daemon.path("b")));
    for round in 0..40 {
        if round % 8 == 0 {
            reslot(&control, 4.5 + f64::from(round) / 8.0);
        }
        assert_eq!((a.ask(0, 0), b.ask(0, 0)), (0, 0));
    }
    // Disk a has the first slot of a rotation, and now for longer than is waited here.
    reslot(&control, 10_000.0);
    let waits = (0..100).any(|_| {
        let before = b.used();
        b.begin(0, 0);
        let begun = Instant::now();
        while b.used() == before {
            if begun.elapsed() > Duration::from_secs(3) {
                return true;
            }
            thread::sleep(Duration::from_millis(1));
        }
        false
    });
    assert!(waits, "the old slots go on");
    assert_eq!(a.ask(0, 0), 0, "whose turn it is is served");
    let under_way: u8 = b.map.read_obj(GuestAddress(STATUS)).unwrap();
    assert_eq!(under_way, 0xff);
}

//! `virtbench fence` beside clients that take their time, with numbers without bounds, and told to stop at a bad moment.

use std::fs::{self, File};
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::fence::{CACHED, Fence, PLAIN, refused};
use crate::support::{finish, signal, virtbench, wait_for};

fn with_metrics(config: &str) -> (Fence, SocketAddr) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    (Fence::formatted(&format!("metrics = \"{address}\"\n{config}")), address)
}

#[test]
fn figures_are_shown_beside_a_client_that_sends_a_byte_a_second() {
    let (fence, address) = with_metrics(PLAIN);
    let daemon = fence.serve();
    let over = AtomicBool::new(false);
    let shown = thread::scope(|scope| {
        let mut slow = wait_for("the figures", || TcpStream::connect(address).ok());
        slow.write_all(b"G").unwrap();
        scope.spawn(|| {
            let mut slow = slow;
            while !over.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(500));
                if slow.write_all(b"G").is_err() {
                    slow = TcpStream::connect(address).unwrap();
                }
            }
        });
        let shown: Vec<_> = (0..3).map(|_| fence.command("status", &["--json"])).collect();
        over.store(true, Ordering::Relaxed);
        shown
    });
    assert!(shown.iter().all(|one| one.code() == 0), "{shown:?}");
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn a_disk_grows_beside_a_hundred_silent_control_clients() {
    let fence = Fence::formatted(PLAIN);
    let daemon = fence.serve();
    let silent: Vec<UnixStream> =
        (0..100).map(|_| UnixStream::connect(fence.path("A.control")).unwrap()).collect();
    let grown = fence.command("resize", &["a", "--size", "24MiB"]);
    assert_eq!(grown.code(), 0, "{grown:?}");
    drop(silent);
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn numbers_without_bounds_are_refused_by_their_flag_and_the_daemon_goes_on() {
    let fence = Fence::formatted(&CACHED.replace("Hybrid/Partitioned", "VirtualFence"));
    let daemon = fence.serve();
    let before = fs::read_to_string(fence.path("fence.toml")).unwrap();
    for (flag, value) in [
        ("--slot-ms", "inf"),
        ("--slot-ms", "nan"),
        ("--slot-ms", "1e308"),
        ("--slot-ms", "3600000"),
        ("--slots", "a=100000000"),
        ("--slots", "a=4294967295"),
        ("--spare", "4294967295"),
        ("--share", "a=inf"),
    ] {
        let done = fence.command("reslot", &[&format!("{flag}={value}")]);
        refused(&done, 2, flag);
        assert!(done.stderr.contains("use 0"), "{done:?}");
    }
    assert_eq!(fs::read_to_string(fence.path("fence.toml")).unwrap(), before);
    // A client of the daemon itself is told the same.
    let mut control = UnixStream::connect(fence.path("A.control")).unwrap();
    let slots = r#"{"reslot":{"disks":[{"disk":"a","slots":4294967295}],"rotation":{}}}"#;
    writeln!(control, "{slots}").unwrap();
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut control, &mut answer).unwrap();
    assert!(answer.contains("use 0 to 1024"), "{answer}");
    assert_eq!(fence.load("A", &["--time", "200ms"]).code(), 0);
    assert_eq!(daemon.stop().code(), 0);
}

#[test]
fn a_daemon_that_is_told_to_stop_while_it_starts_ends() {
    let fence = Fence::formatted(PLAIN);
    // Its device is another's for a while, so that it is told before it serves.
    let slow = File::open(fence.path("SLOW")).unwrap();
    slow.lock().unwrap();
    let config = fence.path("fence.toml");
    let child = virtbench().args(["fence", "serve", config.to_str().unwrap()]).spawn().unwrap();
    let opened = format!("/proc/{}/fd", child.id());
    wait_for("the daemon to have its device open", || {
        let mut files = fs::read_dir(&opened).ok()?.flatten();
        files.find(|file| fs::read_link(file.path()).is_ok_and(|link| link.ends_with("SLOW")))
    });
    signal(&child, "TERM");
    wait_for("the signal to be taken", || {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
        status.lines().any(|line| line == "ShdPnd:\t0000000000000000").then_some(())
    });
    drop(slow);
    let ended = finish(child);
    assert!(ended.stderr.contains("stopping"), "{ended:?}");
    assert!([0, 3].contains(&ended.code()), "{ended:?}");
}

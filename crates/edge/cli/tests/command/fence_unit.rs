//! The daemon under the restrictions of the systemd unit that is shipped, as far as they can be had without systemd. Needs
//! root and systemd-analyze.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use crate::sandbox::Sandbox;
use crate::support::fence::{CACHED, Fence};
use crate::support::{finish, signal, wait_for};

const NOBODY: u32 = 65534;

/// A cached fence of nobody's, whose memory is where the unit's daemon has it, with figures.
fn fence() -> (Fence, SocketAddr) {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = CACHED.replace("[cache]\nfree_target = 300\n", "");
    let top = format!("metrics = \"{address}\"\ncache.free_target = 300\n");
    let fence = Fence::formatted(&format!("{top}{config}"));
    for name in [".", "SLOW", "FAST", "fence.toml"] {
        chown(fence.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    (fence, address)
}

fn unit() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../contrib/virtbench-fence@.service");
    fs::read_to_string(path).unwrap()
}

fn serve(unit: &str, fence: &Fence) -> Child {
    let sandbox = Sandbox::of_unit(unit, &fence.path(".").canonicalize().unwrap());
    for line in &sandbox.left_out {
        eprintln!("not applied: {line}");
    }
    let config: PathBuf = fence.path("fence.toml");
    let serve = ["fence", "serve", config.to_str().unwrap()];
    let mut command = sandbox.command(env!("CARGO_BIN_EXE_virtbench"), &serve);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_cached_fence_is_served_under_the_units_restrictions() {
    let (fence, address) = fence();
    let mut child = serve(&unit(), &fence);
    wait_for("the socket", || {
        if child.try_wait().unwrap().is_some() {
            return Some(());
        }
        UnixStream::connect(fence.path("A")).ok().map(drop)
    });
    if child.try_wait().unwrap().is_some() {
        panic!("it ended: {:?}", finish(child));
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let expected = [
        format!("Uid:\t{NOBODY}\t{NOBODY}\t{NOBODY}\t{NOBODY}"),
        "CapBnd:\t0000000000000000".into(),
        "CapEff:\t0000000000000000".into(),
        "NoNewPrivs:\t1".into(),
        "Seccomp:\t2".into(),
        "Umask:\t0077".into(),
    ];
    for line in expected {
        assert!(status.lines().any(|found| found == line), "{line} in {status}");
    }
    let mounts = fs::read_to_string(format!("/proc/{}/mountinfo", child.id())).unwrap();
    let root = mounts.lines().find(|line| line.split(' ').nth(4) == Some("/")).unwrap();
    assert!(root.split(' ').nth(5).unwrap().starts_with("ro"), "{root}");
    let write = ["--verify", "--read", "30", "--time", "500ms", "--flush-every", "20"];
    let load = fence.load("A", &write);
    assert_eq!(load.code(), 0, "{load:?}");
    let figures = fence.command("status", &["--raw"]);
    assert!(figures.stdout.contains("virtbench_fence"), "{address}: {figures:?}");
    let reslot = fence.command("reslot", &["--spare", "1"]);
    assert_eq!(reslot.code(), 0, "{reslot:?}");
    signal(&child, "TERM");
    let ended = finish(child);
    assert_eq!(ended.code(), 0, "{ended:?}");
    assert_eq!(fence.command("inspect", &["--data"]).code(), 0);
}

#[test]
fn pools_are_served_by_processes_of_their_own_under_the_units_restrictions() {
    let pool = |name: &str, device: &str, socket: &str| {
        format!(
            "[pool.{name}.slow]\ndevice = \"file:{device}\"\n[[disk]]\nname = \"{name}\"\npool = \"{name}\"\n\
             size = \"16 MiB\"\nsocket = \"{socket}\"\n"
        )
    };
    let fence = Fence::formatted(&format!(
        "[scheduler]\nname = \"pass-through\"\n{}{}",
        pool("a", "SLOW", "A"),
        pool("b", "FAST", "B")
    ));
    for name in [".", "SLOW", "FAST", "fence.toml"] {
        chown(fence.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut child = serve(&unit(), &fence);
    for disk in ["A", "B"] {
        wait_for("the socket", || {
            assert!(child.try_wait().unwrap().is_none(), "it ended");
            UnixStream::connect(fence.path(disk)).ok().map(drop)
        });
        let load = fence.load(disk, &["--verify", "--read", "30", "--time", "300ms"]);
        assert_eq!(load.code(), 0, "{load:?}");
    }
    signal(&child, "TERM");
    let ended = finish(child);
    assert_eq!(ended.code(), 0, "{ended:?}");
}

/// What the first test would find if the unit hid the boot's identity from the daemon.
#[test]
fn without_the_boots_identity_no_cached_fence_is_served() {
    let (fence, _) = fence();
    let hidden = unit().replace("ProcSubset=all", "ProcSubset=pid");
    assert!(hidden.contains("\nProcSubset=pid\n"));
    let ended = finish(serve(&hidden, &fence));
    assert_eq!(ended.code(), 3, "{ended:?}");
    assert!(ended.stderr.contains("no boot id"), "{ended:?}");
}

/// Not a test: the step into the filter, in a process of its own.
#[test]
#[ignore = "a step of the others"]
fn enter_the_filter() {
    crate::sandbox::filter::enter();
}

//! Targets behind sockets, and the servers that others wrote.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use virtbench_engine::{Target, TargetError, TargetRequest};
use virtbench_record::LoadOutcome;
use virtbench_workload::{AccessLine, AccessSpec, Amount, LoadSpec};

/// A program that is ended with the test.
pub struct Server(Child);

/// How long a server may take to end by itself.
const ENDING: Duration = Duration::from_secs(2);

impl Server {
    /// Ends it as a power failure would.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }

    fn runs(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Server {
    /// Asks before it kills: nbdkit's scripts lie in a folder that only nbdkit itself takes away.
    fn drop(&mut self) {
        let limit = Instant::now() + ENDING;
        if self.runs() {
            let _ = kill_process(Pid::from_child(&self.0), Signal::TERM);
        }
        while self.runs() && Instant::now() < limit {
            thread::sleep(Duration::from_millis(5));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Starts a server and waits until it listens at the socket.
pub fn serve(command: &mut Command, package: &str, socket: &Path) -> Server {
    let program = command.get_program().to_string_lossy().into_owned();
    let child = command.stdin(Stdio::null()).spawn().unwrap_or_else(|error| {
        panic!("{program} ({error}): install it with `apt-get install {package}`, or run `make setup-test`")
    });
    let mut server = Server(child);
    let limit = Instant::now() + Duration::from_secs(10);
    while !virtbench_host::listens_at(socket) {
        assert!(server.0.try_wait().unwrap().is_none(), "{program} ended at once");
        assert!(Instant::now() < limit, "{program} does not listen");
        thread::sleep(Duration::from_millis(5));
    }
    server
}

/// nbdkit at a socket, with these arguments.
pub fn nbdkit(socket: &Path, arguments: &[&str]) -> Server {
    let mut command = Command::new("nbdkit");
    command.args(["--foreground", "--unix"]).arg(socket).args(arguments);
    serve(&mut command, "nbdkit", socket)
}

/// qemu-storage-daemon serving a block device named `disk` at a socket.
pub fn storage_daemon(socket: &Path, blockdev: &str, export: &str) -> Server {
    let mut command = Command::new("qemu-storage-daemon");
    command.args(["--blockdev", blockdev, "--export", export]);
    serve(&mut command, "qemu-system-common", socket)
}

pub fn uri(socket: &Path, export: &str) -> String {
    format!("nbd+unix:///{export}?socket={}", socket.display())
}

pub fn request(name: &str) -> TargetRequest {
    TargetRequest {
        path: name.into(),
        size_bytes: None,
        direct: true,
        reads: true,
        writes: true,
        allow_overwrite: true,
    }
}

pub fn open(name: &str) -> Result<Target, TargetError> {
    Target::open(&request(name), |_, _| true)
}

/// A short load of half reads, half writes on the whole of a target.
pub fn spec(target: &Target, block_bytes: u64) -> LoadSpec {
    LoadSpec {
        access: AccessSpec::single(AccessLine::new(block_bytes, 50.0, 100.0)),
        region_bytes: target.facts().size_bytes,
        ..super::spec(50.0)
    }
}

/// The same, of 400 operations a worker however slow the host.
pub fn counted(target: &Target, block_bytes: u64) -> LoadSpec {
    let amount = Some(Amount { operations: Some(400), ..Amount::default() });
    LoadSpec { time_ns: 30_000_000_000, amount, ..spec(target, block_bytes) }
}

/// Sequential writes that go round a target twice.
pub fn rounds(target: &Target) -> LoadSpec {
    let amount = Some(Amount { passes: Some(2), ..Amount::default() });
    let mut writing = LoadSpec { amount, ..counted(target, 4096) };
    writing.access.lines[0].read_percent = 0.0;
    writing.access.lines[0].random_percent = 0.0;
    writing
}

/// Asserts that a load did both and nothing failed.
pub fn assert_sound(outcome: &LoadOutcome) {
    assert_eq!(outcome.error_kinds, Default::default());
    assert!(!outcome.interrupted, "{:?}", outcome.notes);
    assert!(outcome.read.operations > 10 && outcome.write.operations > 10, "{outcome:?}");
}

/// Loads with trims, flushes and a check of all that was written.
pub fn assert_trims_flushes_and_verifies(target: &Target) {
    let mut load = LoadSpec { flush_every: Some(4), ..counted(target, 4096) };
    load.access.lines[0].trim_percent = 50.0;
    let outcome = super::apply(&load, target);
    assert_sound(&outcome);
    let [trim, flush] = [outcome.trim.unwrap(), outcome.flush.unwrap()];
    assert!(trim.operations > 10 && flush.operations > 0 && flush.bytes == 0, "{trim:?} {flush:?}");
    let outcome = super::apply(&LoadSpec { verify: true, ..counted(target, 4096) }, target);
    assert_sound(&outcome);
    let found = outcome.verify.unwrap();
    assert!(found.complete && found.damaged() == 0, "{found:?}");
}

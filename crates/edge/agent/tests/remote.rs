//! The agent as it runs on another machine: a process that is spoken with over its standard streams.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use virtbench_agent::protocol::{
    Job, NOT_READY, READY, Reply, Request, SILENCE_LIMIT, TEST_FILE, TargetRef, VERSION, receive, send,
};
use virtbench_workload::{AccessLine, AccessSpec, JobSpec, LoadSpec};

struct Agent {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    /// The line with which it began.
    first: String,
}

impl Agent {
    fn start(folder: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_virtbench-agent"))
            .arg("--remote")
            .arg(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (to, mut from) = (child.stdin.take(), BufReader::new(child.stdout.take().unwrap()));
        let mut first = String::new();
        while first.trim().is_empty() {
            first.clear();
            assert!(from.read_line(&mut first).unwrap() > 0, "it ended without a word");
        }
        Self { child, to, from, first: first.trim_end().to_owned() }
    }

    fn ask(&mut self, request: &Request) -> Reply {
        send(self.to.as_mut().unwrap(), request).unwrap();
        receive(&mut self.from).unwrap()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn ended_within(&mut self, limit: Duration) -> Option<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            if Instant::now() > until {
                return None;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).unwrap().next().is_none()
}

/// A load of `time` on the test file.
fn job(time: Duration) -> Request {
    let access = AccessSpec::single(AccessLine::new(4096, 50.0, 100.0));
    let time_ns = u64::try_from(time.as_nanos()).unwrap();
    let spec = LoadSpec { time_ns, ramp_ns: 0, interval_ns: 100_000_000, ..LoadSpec::new(access, 1 << 20) };
    Request::Prepare(Box::new(Job { target: TargetRef::Path(TEST_FILE.into()), spec: JobSpec::Load(spec) }))
}

#[test]
fn a_file_is_made_and_loaded_the_machine_described_and_nothing_left() {
    let folder = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(folder.path());
    assert_eq!(agent.first, READY);
    assert!(matches!(agent.ask(&Request::Hello { version: VERSION }), Reply::Hello(_)));
    let Reply::Facts(facts) = agent.ask(&Request::Facts { path: ".".into() }) else { panic!() };
    assert!(facts.processors > 0 && facts.disk.filesystem != "unknown", "{facts:?}");
    let mut made = agent.ask(&Request::MakeFile { path: TEST_FILE.into(), size_bytes: 1 << 20 });
    while let Reply::Making { .. } = made {
        made = receive(&mut agent.from).unwrap();
    }
    assert!(matches!(made, Reply::Made { .. }), "{made:?}");
    assert!(matches!(agent.ask(&job(Duration::from_millis(100))), Reply::Prepared { .. }));
    assert!(matches!(agent.ask(&Request::Start { at_ns: 0 }), Reply::Measuring { .. }));
    let Reply::Finished { outcome, host: Some(host) } = receive(&mut agent.from).unwrap() else { panic!() };
    assert!(
        outcome.load().is_some_and(|load| load.total.operations > 0) && host.processors == facts.processors
    );
    send(agent.to.as_mut().unwrap(), &Request::Shutdown).unwrap();
    assert!(agent.ended_within(Duration::from_secs(10)).is_some_and(|status| status.success()));
    assert!(is_empty(folder.path()));
}

#[test]
fn an_agent_whose_controller_hangs_up_ends_in_the_middle_of_a_load() {
    let folder = tempfile::tempdir().unwrap();
    let mut agent = Agent::start(folder.path());
    agent.ask(&Request::MakeFile { path: TEST_FILE.into(), size_bytes: 1 << 20 });
    agent.ask(&job(Duration::from_secs(600)));
    agent.ask(&Request::Start { at_ns: 0 });
    agent.to = None;
    assert!(agent.ended_within(Duration::from_secs(10)).is_some());
    assert!(is_empty(folder.path()));
}

#[test]
fn a_signal_ends_it_and_it_tidies_up() {
    for signal in [Signal::TERM, Signal::HUP] {
        let folder = tempfile::tempdir().unwrap();
        let mut agent = Agent::start(folder.path());
        agent.ask(&Request::MakeFile { path: TEST_FILE.into(), size_bytes: 1 << 20 });
        agent.signal(signal);
        assert!(agent.ended_within(Duration::from_secs(10)).is_some_and(|status| !status.success()));
        assert!(is_empty(folder.path()));
    }
}

#[test]
fn a_silent_controller_is_given_up_and_one_that_is_alive_is_not() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [mut silent, mut alive] = [0, 1].map(|index| Agent::start(folders[index].path()));
    let until = Instant::now() + SILENCE_LIMIT + Duration::from_secs(5);
    while Instant::now() < until {
        send(alive.to.as_mut().unwrap(), &Request::Alive).unwrap();
        std::thread::sleep(Duration::from_secs(1));
    }
    assert!(silent.ended_within(Duration::from_secs(5)).is_some_and(|status| !status.success()));
    assert!(is_empty(folders[0].path()));
    assert!(matches!(alive.ask(&Request::Ping { id: 1 }), Reply::Pong { id: 1, .. }));
}

#[test]
fn two_agents_do_not_share_a_folder_and_a_killed_one_s_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Agent::start(folder.path());
    let mut second = Agent::start(folder.path());
    assert!(
        second.first.starts_with(NOT_READY) && second.first.contains("in use by another run"),
        "{}",
        second.first
    );
    assert!(second.ended_within(Duration::from_secs(10)).is_some_and(|status| !status.success()));
    first.ask(&Request::MakeFile { path: TEST_FILE.into(), size_bytes: 1 << 20 });
    first.signal(Signal::KILL);
    assert!(first.ended_within(Duration::from_secs(10)).is_some() && !is_empty(folder.path()));
    let mut third = Agent::start(folder.path());
    assert_eq!(third.first, READY);
    third.to = None;
    assert!(third.ended_within(Duration::from_secs(10)).is_some() && is_empty(folder.path()));
    let mut rest = String::new();
    third.from.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "");
}

//! The agent for another kind of processor at work, under emulation in user mode.

use std::fs::{self, Permissions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;

use virtbench_agent::protocol::{Job, TEST_FILE, TargetRef};
use virtbench_agents::agents;
use virtbench_mark::{MARK_FILE, Mark, RunId};
use virtbench_workload::{AccessLine, AccessSpec, EngineKind, JobSpec, LoadSpec};

use super::login::log_in;
use crate::connection::{Connection, Measuring};
use crate::process::AgentProcess;

const LIMIT: Duration = Duration::from_secs(60);
/// Of the package qemu-user-static.
const EMULATOR: &str = "qemu-aarch64-static";

#[test]
fn the_agent_for_arm_makes_a_file_and_loads_it() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let agent = agents().iter().find(|agent| agent.machine() == "aarch64").unwrap();
    let login = folder.path().join(".virtbench-login-0");
    fs::create_dir(&login).unwrap();
    // Of a login that has ended: with an emulator there is none.
    let mark = Mark::new(RunId::new_random(), "login");
    fs::write(login.join(MARK_FILE), format!("{mark}1")).unwrap();
    let program = login.join("program");
    fs::write(&program, agent.blocks().unwrap()).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o700)).unwrap();
    let (stream, other) = UnixStream::pair().unwrap();
    let mut command = Command::new(EMULATOR);
    command.arg(&program).arg("--remote").arg(folder.path()).arg(&login);
    let mut process =
        AgentProcess::spawn_talking(command, OwnedFd::from(other), "the emulated agent").unwrap();
    log_in(&stream, agents(), LIMIT).unwrap();
    let mut connection = Connection::new(stream).unwrap();
    assert!(connection.greet(LIMIT).unwrap().processors > 0);
    connection.make_file(TEST_FILE, 1 << 20, |_, _| true).unwrap();
    let access = AccessSpec::single(AccessLine::new(4096, 50.0, 100.0));
    // The emulator knows no io_uring.
    let engine = EngineKind::Psync;
    let spec = LoadSpec {
        engine,
        outstanding: 1,
        time_ns: 200_000_000,
        ramp_ns: 0,
        ..LoadSpec::new(access, 1 << 20)
    };
    let job = Job { target: TargetRef::Path(TEST_FILE.into()), spec: JobSpec::Load(spec) };
    connection.prepare(job, LIMIT).unwrap();
    connection.start(0).unwrap();
    assert!(matches!(connection.measuring(LIMIT).unwrap(), Measuring::Since { .. }));
    let (outcome, _) = connection.finished(Duration::from_millis(200), LIMIT, LIMIT).unwrap();
    assert!(outcome.load().is_some_and(|load| load.total.operations > 0 && load.error_kinds.is_empty()));
    connection.shut_down().unwrap();
    process.end_within(LIMIT);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "program or folder is left");
}

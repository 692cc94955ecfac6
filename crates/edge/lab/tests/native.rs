//! The native environment: the embedded agent as a child of this process.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use virtbench_agent::now_ns;
use virtbench_agent::protocol::TargetRef;
use virtbench_lab::{Environment, Machine, Native};

fn start() -> Box<dyn Machine> {
    Native::new("native", "/some/file".into()).start().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_agent_answers_with_the_hosts_own_clock() {
    let mut machine = start();
    let before = now_ns();
    let trip = machine.connection().ping().unwrap();
    assert!((before..=now_ns()).contains(&trip.clock_ns));
    assert!(machine.shares_host_clock() && machine.guest().is_none());
    assert_eq!(machine.target(), TargetRef::Path("/some/file".into()));
    machine.check().unwrap();
    let process = machine.processes()[0];
    machine.shut_down();
    assert!(!fs::exists(format!("/proc/{process}")).unwrap());
}

#[test]
fn a_killed_agent_is_noticed_at_once() {
    let mut machine = start();
    let process = machine.processes()[0].to_string();
    assert!(Command::new("kill").args(["-9", &process]).status().unwrap().success());
    let began = Instant::now();
    let error = machine.connection().ping().unwrap_err();
    let text = machine.explain(error).to_string();
    assert!(text.contains("the native agent was killed by signal 9"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(5) && machine.check().is_err());
}

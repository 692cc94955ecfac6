//! The native environment: the embedded agent as a child of this process.

use std::fs;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use virtbench_agent::now_ns;
use virtbench_agent::protocol::TargetRef;
use virtbench_lab::{Environment, Machine, Native, TimeLimits, Translator, measure};
use virtbench_workload::{CommandSpec, Workload, WorkloadSpec};

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

#[test]
fn readings_of_the_clock_are_system_calls_of_an_agent_without_a_vdso() {
    const READINGS: u64 = 30_000;
    let folder = tempfile::tempdir().unwrap();
    let script = format!("my $t = 0; $t += time for 1 .. {READINGS}");
    let words = ["perl", "-MTime::HiRes=time", "-e", &script].map(str::to_owned).into();
    let spec = WorkloadSpec {
        count: true,
        warm_ups: 1,
        runs: 1,
        ..WorkloadSpec::new(Workload::Command(CommandSpec::new(words)))
    };
    let calls = |native: Native| {
        let mut machine = { native }.start().unwrap();
        let limits = TimeLimits::default();
        let (_, measured) = measure(&mut *machine, spec.clone(), limits, &AtomicBool::new(false)).unwrap();
        let process = machine.processes()[0];
        machine.shut_down();
        assert!(!fs::exists(format!("/proc/{process}")).unwrap());
        let outcome = measured.outcome;
        let crossings = outcome.footprint.and_then(|seen| seen.crossings);
        crossings
            .unwrap_or_else(|| panic!("this test counts system calls, run it as root: {:?}", outcome.notes))
            .calls
    };
    let native = || Native::new("native", folder.path().to_owned());
    // Calls of the whole machine are counted, to which others only add.
    let with = (0..3).map(|_| calls(native())).min().unwrap();
    let without = calls(native().without_vdso());
    assert!(without >= with + READINGS, "{without} calls, {with} with a vDSO");
}

/// A loop of an interpreter, behind a script and another program, so that what programs start is translated as well.
#[test]
fn programs_under_the_translator_take_several_times_as_long_and_nothing_of_it_stays() {
    let folder = tempfile::tempdir().unwrap();
    let count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let words = ["sh", "-c", &format!("env sh -c '{count}'; true")].map(str::to_owned).into();
    let spec = WorkloadSpec { runs: 1, ..WorkloadSpec::new(Workload::Command(CommandSpec::new(words))) };
    let user_ns = |native: Native| {
        let mut machine = { native }.start().unwrap_or_else(|error| panic!("{error}"));
        let (limits, process) = (TimeLimits::default(), machine.processes()[0]);
        let (_, measured) = measure(&mut *machine, spec.clone(), limits, &AtomicBool::new(false)).unwrap();
        machine.shut_down();
        assert!(!fs::exists(format!("/proc/{process}")).unwrap());
        assert_eq!(measured.outcome.errors, 0, "{:?}", measured.outcome);
        measured.outcome.metric("elapsed").unwrap().mean
    };
    let native = || Native::new("native", folder.path().to_owned());
    let translator = Translator::find().unwrap();
    let [plain, translated] = [native(), native().translated(translator)].map(user_ns);
    assert!(translated > 2.0 * plain, "{translated} s translated, {plain} s");
    assert!(!fs::exists("/proc/sys/fs/binfmt_misc/virtbench").unwrap(), "a rule for the whole machine");
}

//! One conversation with the agent, held with a guest of each platform: they carry it in different ways.
#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::time::Duration;

use virtbench_agent::protocol::{FailureKind, Job, TargetRef};
use virtbench_lab::{
    Accelerator, Connection, ConnectionError, Guest, GuestConfig, GuestImage, Measuring, Qemu, UmlConfig,
    UmlGuest, UmlImage, UmlKernel, find_kernel, usable_processors,
};
use virtbench_record::JobOutcome;
use virtbench_workload::{AccessLine, AccessSpec, JobSpec, LoadSpec, parse_workload};

/// Generous: a host that is busy with other tests.
const SOON: Duration = Duration::from_secs(60);
const HOUR_NS: u64 = 3_600_000_000_000;

fn or_mend<T, E: std::fmt::Display>(result: Result<T, E>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}

fn load(target: String, time_ns: u64) -> Job {
    let spec = LoadSpec {
        outstanding: 4,
        ramp_ns: 1_000_000,
        time_ns,
        // Two thousand of them make an answer of a fifth of a mebibyte.
        interval_ns: 1_000_000,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 70.0, 100.0)), 1 << 20)
    };
    Job { target: TargetRef::Path(target), spec: JobSpec::Load(spec) }
}

fn workload(text: &str) -> Job {
    Job { target: TargetRef::Path("none".into()), spec: JobSpec::Workload(parse_workload(text).unwrap()) }
}

fn is_measuring(connection: &mut Connection) -> bool {
    connection.start(0).unwrap();
    matches!(connection.measuring(SOON).unwrap(), Measuring::Since { .. })
}

fn outcome(connection: &mut Connection) -> JobOutcome {
    connection.finished(Duration::ZERO, SOON, SOON).unwrap().0
}

fn refused<T: std::fmt::Debug>(result: Result<T, ConnectionError>, expected: FailureKind) {
    let refusal = result.unwrap_err();
    assert!(matches!(refusal, ConnectionError::Refused { kind, .. } if kind == expected), "{refusal:?}");
}

/// What `crates/edge/agent/tests/session.rs` holds of an agent in the same process.
fn converse(connection: &mut Connection) {
    connection.start(0).unwrap();
    refused(connection.measuring(SOON), FailureKind::Request);
    let target = connection.prepare(load("null".into(), 2_000_000_000), SOON).unwrap();
    assert!(target.is_some() && is_measuring(connection));
    connection.ping().unwrap();
    let JobOutcome::Load(done) = outcome(connection) else { panic!("a workload") };
    assert!(done.total.operations > 0 && done.intervals.len() == 2_000 && !done.interrupted);

    connection.prepare(load("null".into(), HOUR_NS), SOON).unwrap();
    assert!(is_measuring(connection));
    refused(connection.prepare(load("null".into(), HOUR_NS), SOON), FailureKind::Request);
    connection.stopper().stop().unwrap();
    assert!(matches!(outcome(connection), JobOutcome::Load(done) if done.interrupted));

    connection.prepare(workload("memory:threads=1,array=256KiB,kernel=1ms,runs=2,ramp=1ms"), SOON).unwrap();
    assert!(is_measuring(connection));
    let JobOutcome::Workload(done) = outcome(connection) else { panic!("a load") };
    assert_eq!(done.metric("triad").unwrap().samples.len(), 2);
    connection.prepare(workload("memory:threads=1,array=256KiB,kernel=1ms,time=1h"), SOON).unwrap();
    assert!(is_measuring(connection));
    connection.stopper().stop().unwrap();
    assert!(matches!(outcome(connection), JobOutcome::Workload(done) if done.interrupted));

    // A mebibyte to the guest, of which some comes back.
    let long = format!("/{}", "x".repeat(1 << 20));
    refused(connection.prepare(load(long, 1_000_000), SOON), FailureKind::Target);
    connection.ping().unwrap();
}

#[test]
fn the_agent_keeps_its_protocol_in_a_guest_of_user_mode_linux() {
    let image = or_mend(UmlImage::new(&or_mend(UmlKernel::find()), &[]));
    let mut guest = or_mend(UmlGuest::boot(&image, &UmlConfig::new(usable_processors().unwrap()[0])));
    converse(guest.connection());
    guest.shut_down();
}

#[test]
fn the_agent_keeps_its_protocol_in_a_guest_of_qemu() {
    let image = or_mend(GuestImage::new(&or_mend(find_kernel(None)), &[]));
    let mut guest = or_mend(Guest::boot(&or_mend(Qemu::find()), &image, &GuestConfig::new(Accelerator::Tcg)));
    converse(guest.connection());
    guest.shut_down();
}

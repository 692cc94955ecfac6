//! A host talks to an agent over a socket, on the null target.

#![allow(clippy::unwrap_used)]

use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;

use virtbench_agent::protocol::appliance::{ApplianceRequest, DiskPlace, MountOrder};
use virtbench_agent::protocol::{
    FailureKind, Job, ProtocolError, Reply, Request, TargetRef, VERSION, receive, send,
};
use virtbench_agent::{Accounts, serve};
use virtbench_recipe::Init;
use virtbench_record::JobOutcome;
use virtbench_workload::{AccessLine, AccessSpec, JobSpec, LoadSpec, parse_workload};

fn agent() -> (UnixStream, JoinHandle<Result<(), ProtocolError>>) {
    let (host, agent) = UnixStream::pair().unwrap();
    host.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let reader = agent.try_clone().unwrap();
    (host, std::thread::spawn(move || serve(reader, agent, Accounts::Controller)))
}

fn ask(host: &mut UnixStream, request: &Request) -> Reply {
    send(host, request).unwrap();
    receive(host).unwrap()
}

fn job(time_ns: u64) -> Request {
    Request::Prepare(Box::new(Job {
        target: TargetRef::Path("null".into()),
        spec: JobSpec::Load(LoadSpec {
            outstanding: 4,
            workers: 1,
            ramp_ns: 1_000_000,
            time_ns,
            interval_ns: 1_000_000_000,
            seed: 1,
            ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 70.0, 100.0)), 1 << 20)
        }),
    }))
}

#[test]
fn a_load_is_prepared_measured_and_finished_and_the_clock_answers_meanwhile() {
    let (mut host, agent) = agent();
    assert!(matches!(ask(&mut host, &Request::Hello { version: VERSION }), Reply::Hello(_)));
    assert!(matches!(ask(&mut host, &job(200_000_000)), Reply::Prepared { .. }));
    assert!(matches!(ask(&mut host, &Request::Start { at_ns: 0 }), Reply::Measuring { .. }));
    assert!(matches!(ask(&mut host, &Request::Ping { id: 9 }), Reply::Pong { id: 9, .. }));
    let Reply::Finished { outcome: JobOutcome::Load(outcome), host: None } = receive(&mut host).unwrap()
    else {
        panic!("not finished")
    };
    assert!(outcome.total.operations > 0 && !outcome.interrupted);
    send(&mut host, &Request::Shutdown).unwrap();
    agent.join().unwrap().unwrap();
}

#[test]
fn an_appliance_is_refused_where_the_agent_is_not_the_first_process() {
    let (mut host, _agent) = agent();
    let order = MountOrder {
        host_name: "x".into(),
        init: Init::Agent,
        root: DiskPlace::Node("/nonexistent".into()),
        data: None,
        interface: None,
        links: Vec::new(),
        hosts: Vec::new(),
        screen: false,
    };
    let mount = Request::Appliance(ApplianceRequest::Mount(Box::new(order)));
    for (request, expected) in [
        (mount, "the first process of a guest or of namespaces of its own"),
        (Request::Appliance(ApplianceRequest::State), "there is no appliance here"),
        (Request::Appliance(ApplianceRequest::Stop), "there is no appliance here"),
    ] {
        let Reply::Failed { kind: FailureKind::Appliance, message } = ask(&mut host, &request) else {
            panic!()
        };
        assert!(message.contains(expected), "{message}");
    }
}

fn workload(text: &str) -> Request {
    let spec = JobSpec::Workload(parse_workload(text).unwrap());
    Request::Prepare(Box::new(Job { target: TargetRef::Path("none".into()), spec }))
}

#[test]
fn a_workload_is_a_job_like_a_load() {
    let (mut host, agent) = agent();
    let job = workload("memory:threads=2,array=256KiB,kernel=1ms,runs=2,ramp=1ms");
    assert_eq!(ask(&mut host, &job), Reply::Prepared { target: None });
    assert!(matches!(ask(&mut host, &Request::Start { at_ns: 0 }), Reply::Measuring { .. }));
    let Reply::Finished { outcome: JobOutcome::Workload(outcome), .. } = receive(&mut host).unwrap() else {
        panic!()
    };
    assert!(outcome.metric("triad").unwrap().samples.len() == 2 && !outcome.interrupted);
    ask(&mut host, &workload("memory:threads=1,array=256KiB,kernel=1ms,time=1h"));
    ask(&mut host, &Request::Start { at_ns: 0 });
    let Reply::Finished { outcome: JobOutcome::Workload(outcome), .. } = ask(&mut host, &Request::Stop)
    else {
        panic!()
    };
    assert!(outcome.interrupted);
    send(&mut host, &Request::Shutdown).unwrap();
    agent.join().unwrap().unwrap();
}

#[test]
fn a_workload_that_does_not_fit_is_refused_with_the_reason() {
    let (mut host, _agent) = agent();
    let Reply::Failed { message, .. } = ask(&mut host, &workload("memory:array=2TiB")) else { panic!() };
    assert!(message.contains("array=2 TiB"), "{message}");
}

#[test]
fn a_stopped_load_brings_back_what_it_has() {
    let (mut host, _agent) = agent();
    ask(&mut host, &job(600_000_000_000));
    ask(&mut host, &Request::Start { at_ns: 0 });
    let Reply::Finished { outcome: JobOutcome::Load(outcome), .. } = ask(&mut host, &Request::Stop) else {
        panic!("not finished")
    };
    assert!(outcome.interrupted);
}

#[test]
fn requests_out_of_turn_are_refused_and_the_agent_stays() {
    let (mut host, _agent) = agent();
    let refused = |reply| matches!(reply, Reply::Failed { kind: FailureKind::Request, .. });
    assert!(refused(ask(&mut host, &Request::Hello { version: 99 })));
    assert!(refused(ask(&mut host, &Request::Start { at_ns: 0 })));
    ask(&mut host, &job(600_000_000_000));
    ask(&mut host, &Request::Start { at_ns: 0 });
    assert!(refused(ask(&mut host, &job(1_000_000))));
    assert!(matches!(ask(&mut host, &Request::Ping { id: 1 }), Reply::Pong { .. }));
}

#[test]
fn a_target_that_cannot_be_opened_is_a_failure_of_the_target() {
    let (mut host, _agent) = agent();
    let Request::Prepare(mut job) = job(1_000_000) else { unreachable!() };
    job.target = TargetRef::Path("/nonexistent/disk".into());
    let reply = ask(&mut host, &Request::Prepare(job));
    assert!(matches!(reply, Reply::Failed { kind: FailureKind::Target, .. }), "{reply:?}");
}

#[test]
fn a_host_that_vanishes_ends_the_agent_and_its_load() {
    let (mut host, agent) = agent();
    ask(&mut host, &job(600_000_000_000));
    ask(&mut host, &Request::Start { at_ns: 0 });
    drop(host);
    agent.join().unwrap().unwrap();
}

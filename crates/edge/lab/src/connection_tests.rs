//! Agents that say what they should not.

use super::*;
use std::io::Write;
use std::thread;
use virtbench_agent::protocol::FailureKind;

const SOON: Duration = Duration::from_millis(100);

/// A connection to an agent that has said this already, whatever it is asked.
fn to_one_who_says(bytes: &[u8]) -> (Connection, UnixStream) {
    let (host, mut agent) = UnixStream::pair().unwrap();
    agent.write_all(bytes).unwrap();
    (Connection::new(host).unwrap(), agent)
}

fn frame(reply: &Reply) -> Vec<u8> {
    let mut wire = Vec::new();
    send(&mut wire, reply).unwrap();
    wire
}

#[test]
fn silence_ends_at_the_limit() {
    let (mut connection, _agent) = to_one_who_says(b"");
    let error = connection.greet(SOON).unwrap_err();
    assert_eq!(error.to_string(), "the agent did not answer its greeting within 0.1 s");
}

#[test]
fn bytes_that_trickle_in_do_not_extend_the_limit() {
    let (mut connection, mut agent) = to_one_who_says(&1000u32.to_le_bytes());
    thread::spawn(move || {
        while agent.write_all(b" ").is_ok() {
            thread::sleep(Duration::from_millis(20));
        }
    });
    let began = Instant::now();
    assert!(matches!(connection.greet(SOON), Err(ConnectionError::TimedOut { .. })));
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn garbage_and_huge_claims_are_protocol_errors() {
    let (mut connection, _agent) = to_one_who_says(b"\x03\0\0\0abc");
    let error = connection.greet(SOON).unwrap_err();
    assert!(matches!(error, ConnectionError::Protocol(ProtocolError::Malformed(_))));
    let (mut connection, _agent) = to_one_who_says(&[0xff; 8]);
    let error = connection.greet(SOON).unwrap_err();
    assert!(matches!(error, ConnectionError::Protocol(ProtocolError::TooLarge { .. })));
}

#[test]
fn the_end_is_told_apart_from_silence() {
    let (mut connection, agent) = to_one_who_says(b"");
    drop(agent);
    assert!(matches!(connection.greet(SOON), Err(ConnectionError::Protocol(ProtocolError::Closed))));
}

#[test]
fn an_answer_to_another_question_is_not_taken() {
    let (mut connection, _agent) = to_one_who_says(&frame(&Reply::Pong { id: 77, clock_ns: 0 }));
    let error = connection.ping().unwrap_err().to_string();
    assert!(error.contains("answer a ping") && error.contains("77"), "{error}");
}

#[test]
fn what_a_guest_says_is_cut_and_loses_its_escape_sequences() {
    let message = format!("\x1b[31m{}", "long ".repeat(1000));
    let reply = Reply::Failed { kind: FailureKind::Target, message };
    let (mut connection, _agent) = to_one_who_says(&frame(&reply));
    let error = connection.finished(SOON, SOON, SOON).unwrap_err();
    assert!(matches!(&error, ConnectionError::Refused { kind: FailureKind::Target, .. }));
    let text = error.to_string();
    assert!(!text.contains('\x1b') && text.len() <= TEXT_LIMIT, "{text}");
}

#[test]
fn an_agent_that_is_late_is_asked_for_signs_of_life() {
    let late = |answers: bool| {
        let (host, mut agent) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(host).unwrap();
        thread::spawn(move || {
            while let Ok(Request::Ping { id }) = virtbench_agent::protocol::receive(&mut agent) {
                if answers {
                    send(&mut agent, &Reply::Pong { id, clock_ns: 0 }).unwrap();
                }
            }
        });
        let error =
            connection.finished(Duration::ZERO, Duration::ZERO, SIGN_INTERVAL + 5 * SOON).unwrap_err();
        assert!(matches!(error, ConnectionError::NotFinished { answers: found, .. } if found == answers));
        error.to_string()
    };
    assert!(late(true).contains("its disk does not"));
    assert!(late(false).contains("the guest hangs"));
}

#[test]
fn a_workload_may_take_longer_than_expected_but_not_be_silent() {
    let (mut connection, _agent) = to_one_who_says(b"");
    let began = Instant::now();
    let error = connection.finished(SOON, Duration::from_secs(3600), SIGN_INTERVAL + SOON).unwrap_err();
    assert!(matches!(error, ConnectionError::NotFinished { answers: false, .. }));
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn an_outcome_may_come_after_signs_of_life() {
    let (host, mut agent) = UnixStream::pair().unwrap();
    let mut connection = Connection::new(host).unwrap();
    (connection.pings, connection.last_sign_asked) = (3, 3);
    for id in 1..=3 {
        send(&mut agent, &Reply::Pong { id, clock_ns: 0 }).unwrap();
    }
    send(&mut agent, &Reply::Failed { kind: FailureKind::Run, message: "over".into() }).unwrap();
    let error = connection.finished(SOON, SOON, SOON).unwrap_err();
    assert!(matches!(error, ConnectionError::Refused { kind: FailureKind::Run, .. }));
    assert_eq!(connection.trips.len(), 1, "late answers say nothing of the clock");
}

#[test]
fn the_clock_of_an_agent_that_works_is_looked_at_again_and_again() {
    const AHEAD_NS: u64 = 1_000_000_000_000;
    let (host, mut agent) = UnixStream::pair().unwrap();
    let mut connection = Connection::new(host).unwrap();
    // Of the third look on it answers slowly.
    thread::spawn(move || {
        let mut asked = 0;
        while let Ok(Request::Ping { id }) = virtbench_agent::protocol::receive(&mut agent) {
            asked += 1;
            if asked > 2 * LOOK_PINGS {
                thread::sleep(SOON / 10);
            }
            send(&mut agent, &Reply::Pong { id, clock_ns: now_ns() + AHEAD_NS }).unwrap();
            if asked == 3 * LOOK_PINGS {
                let failed = Reply::Failed { kind: FailureKind::Run, message: "over".into() };
                return send(&mut agent, &failed).unwrap();
            }
        }
    });
    let hour = Duration::from_secs(3600);
    let error = connection.finished(hour, hour, hour).unwrap_err();
    assert!(matches!(error, ConnectionError::Refused { .. }), "{error}");
    connection.end_look();
    let offsets = connection.take_offsets();
    assert_eq!(offsets.len(), 3, "{offsets:?}");
    for offset in &offsets {
        let off = offset.offset_ns.abs_diff(i64::try_from(AHEAD_NS).unwrap());
        assert!(off <= offset.uncertainty_ns, "{offset:?}");
    }
    assert!(offsets[2].uncertainty_ns > 4_000_000, "a slow answer leaves more open: {offsets:?}");
    assert!(connection.take_offsets().is_empty());
}

#[test]
fn a_crash_comes_unasked_and_is_kept_until_somebody_asks() {
    let crash = |service: &str| {
        let failure = ServiceFailure { service: service.into(), why: "it ended".into(), log: Vec::new() };
        frame(&Reply::Appliance(ApplianceReply::Crashed(failure)))
    };
    let pong = frame(&Reply::Pong { id: 1, clock_ns: 5 });
    let (mut connection, mut agent) = to_one_who_says(&[crash("one"), pong].concat());
    assert_eq!(connection.ping().unwrap().clock_ns, 5);
    agent.write_all(&crash("two")).unwrap();
    for service in ["one", "two"] {
        assert_eq!(connection.next_crash().unwrap().unwrap().service, service);
    }
    assert!(connection.next_crash().unwrap().is_none());
    agent.write_all(&frame(&Reply::Pong { id: 9, clock_ns: 5 })).unwrap();
    assert!(matches!(connection.next_crash(), Err(ConnectionError::Unexpected { .. })));
}

//! What was measured, whatever the server does when the conditions are checked.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use virtbench_oltp::{LoadEvent, LocalServer, run, run_from, settle};
use virtbench_record::{DatabaseKind, OltpPlan};

use crate::databases::{NEVER, plan, populated_server};

/// Stops all processes of a server, or lets them go on.
fn signal_all(server: &LocalServer, signal: Signal) {
    let leader = server.process();
    let children = std::fs::read_to_string(format!("/proc/{leader}/task/{leader}/children")).unwrap();
    let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    for pid in children.chain([i32::try_from(leader).unwrap()]) {
        // A process of the server may have ended meanwhile.
        let _ = kill_process(Pid::from_raw(pid).unwrap(), signal);
    }
}

#[test]
fn a_check_that_waits_for_a_lock_hears_a_stop_and_leaves_the_result() {
    let (server, connect) = populated_server(DatabaseKind::PostgreSql);
    let mut outcome = run_from(&connect, &plan(), None, &NEVER, &mut |_| {}).unwrap();
    let stop = AtomicBool::new(false);
    let locking = [
        "BEGIN",
        "LOCK TABLE new_order IN ACCESS EXCLUSIVE MODE",
        "SELECT CAST(pg_sleep(8) AS text)",
        "COMMIT",
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| server.query(&locking).unwrap());
        std::thread::sleep(Duration::from_secs(1));
        scope.spawn(|| {
            std::thread::sleep(Duration::from_secs(1));
            stop.store(true, Ordering::Relaxed);
        });
        let begun = Instant::now();
        settle(&connect, &mut outcome, &stop, &mut |_| {});
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    });
    assert_eq!(outcome.conditions_unchecked.as_deref(), Some("stopped"));
    assert!(outcome.transactions_per_second > 0.0 && outcome.conditions_held.is_empty());
}

#[test]
fn a_server_that_stops_answering_leaves_what_was_measured_and_every_transaction_in_flight() {
    let (server, connect) = populated_server(DatabaseKind::PostgreSql);
    let load = OltpPlan { ramp_up_ns: 0, time_ns: 3_000_000_000, deferred_delivery: false, ..plan() };
    let mut seconds = 0;
    let outcome = run(&connect, &load, &NEVER, &mut |event| {
        seconds += u32::from(matches!(event, LoadEvent::Second(_)));
        if seconds == 1 && matches!(event, LoadEvent::Second(_)) {
            signal_all(&server, Signal::STOP);
        }
    });
    signal_all(&server, Signal::CONT);
    let outcome = outcome.unwrap();
    assert!(outcome.transactions_per_second > 0.0 && outcome.ended_by.is_none(), "{outcome:?}");
    let unchecked = outcome.conditions_unchecked.as_ref().expect("nobody answers");
    assert!(unchecked.contains("no answer"), "{unchecked}");
    let unfinished: u64 = outcome.transactions.values().map(|one| one.unfinished).sum();
    let longest = outcome.transactions.values().filter_map(|one| one.latency_ns).map(|one| one.max).max();
    assert_eq!(unfinished, 4, "each user waits for one");
    assert!(longest > Some(1_500_000_000), "{longest:?}");
}

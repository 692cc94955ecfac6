//! Populating, loading and checking real servers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::Duration;

use virtbench_oltp::{
    Connect, Depth, FaultKind, Left, LoadEvent, LocalServer, OltpError, Population, check, find_population,
    populate, run,
};
use virtbench_record::{DatabaseKind, OltpChoice, OltpIsolation, OltpMix, OltpOutcome, OltpPlan};
use virtbench_samples::this_run::of_this_run;
use virtbench_workload::{Arrivals, Rate};

pub static NEVER: AtomicBool = AtomicBool::new(false);
pub const POPULATION: Population = Population { warehouses: 1, seed: 11 };

/// Settings of a server whose disk need not keep what it is told.
fn settings(kind: DatabaseKind) -> &'static [&'static str] {
    match kind {
        DatabaseKind::PostgreSql => &["fsync=off", "max_connections=20", "shared_buffers=256MB"],
        DatabaseKind::MariaDb => &[
            "innodb-flush-log-at-trx-commit=0",
            "innodb-buffer-pool-size=256M",
            "innodb-doublewrite=0",
            "max-connections=16",
        ],
    }
}

pub fn server(kind: DatabaseKind) -> LocalServer {
    LocalServer::start(kind, settings(kind)).unwrap()
}

/// One with a copy of the population that is made once for all tests of a run.
pub fn populated_server(kind: DatabaseKind) -> (LocalServer, Connect) {
    populated_server_with(kind, settings(kind))
}

/// The same with settings of its own, which the population was made without.
pub fn populated_server_with(kind: DatabaseKind, settings: &[&str]) -> (LocalServer, Connect) {
    let shared =
        of_this_run(Path::new(env!("CARGO_TARGET_TMPDIR")), &format!("populated-{kind:?}"), |made| {
            let server = server(kind);
            populated(&server);
            server.keep(&made.join("data")).unwrap();
        });
    let server = LocalServer::start_from(kind, settings, &shared.folder.join("data")).unwrap();
    let connect = server.connect();
    (server, connect)
}

pub fn populated(server: &LocalServer) -> Connect {
    let connect = server.connect();
    let mut last = (0, 0);
    let made =
        populate(&connect, POPULATION, false, &NEVER, &mut |progress| last = (progress.rows, progress.of));
    let made = made.unwrap();
    assert!(made.rows > 590_000 && made.bytes > 60 << 20, "{made:?}");
    assert!(last.0 > 0 && last.0 <= last.1, "{last:?}");
    connect
}

pub fn plan() -> OltpPlan {
    OltpPlan { users: 4, threads: 2, ramp_up_ns: 300_000_000, time_ns: 2_000_000_000, ..OltpPlan::default() }
}

/// The same for those that look at what a load is like once.
pub fn brief() -> OltpPlan {
    OltpPlan { time_ns: 1_000_000_000, ..plan() }
}

pub fn loaded(connect: &Connect, plan: &OltpPlan) -> OltpOutcome {
    run(connect, plan, &NEVER, &mut |_| {}).unwrap()
}

/// What every outcome keeps to.
fn assert_sound(outcome: &OltpOutcome) {
    let completed: u64 = outcome.transactions.values().map(|one| one.completed).sum();
    let in_series: u64 = outcome.series.iter().map(|second| second.transactions).sum();
    assert_eq!(completed, in_series);
    assert!(completed > 20 && outcome.failed() == 0, "{outcome:?}");
    assert_eq!(outcome.series.len(), 2);
    assert!(outcome.transactions["new_order"].latency_ns.is_some_and(|latency| latency.p90 > 0));
    assert!(outcome.series.iter().any(|second| second.p90_ns.is_some()));
    assert!(outcome.own_cpu_per_transaction_ns.is_some_and(|ns| ns > 0.0));
    assert!(outcome.conditions_held.starts_with(&[1, 2, 3, 4]), "{:?}", outcome.conditions_held);
    assert!(outcome.notes[0].contains("not comparable"));
}

/// The way of a database from empty to loaded.
fn whole_way(kind: DatabaseKind) -> (LocalServer, Connect) {
    let server = server(kind);
    let empty = run(&server.connect(), &plan(), &NEVER, &mut |_| {}).unwrap_err();
    assert!(
        matches!(empty, OltpError::NotPopulated(..)) && empty.to_string().contains("populate"),
        "{empty}"
    );
    let connect = populated(&server);
    let again = populate(&connect, POPULATION, false, &NEVER, &mut |_| {}).unwrap_err();
    assert!(matches!(again, OltpError::Populated { warehouses: 1, .. }), "{again}");
    let fresh = check(&connect, Depth::All, &NEVER, &mut |_| {}).unwrap();
    assert_eq!((fresh.held.len(), fresh.broken.len(), fresh.population), (11, 0, POPULATION), "{fresh:?}");
    let mut seconds = 0;
    let all = OltpPlan { check_all: true, ..plan() };
    let outcome =
        run(&connect, &all, &NEVER, &mut |event| seconds += u32::from(matches!(event, LoadEvent::Second(_))))
            .unwrap();
    assert_sound(&outcome);
    assert_eq!((seconds, outcome.conditions_held.len()), (2, 11));
    assert!(outcome.deferred.as_ref().is_some_and(|deferred| deferred.queued > 0 && deferred.orders > 0));
    (server, connect)
}

#[test]
fn postgresql_is_populated_loaded_and_stays_consistent() {
    let (server, connect) = whole_way(DatabaseKind::PostgreSql);
    for isolation in [OltpIsolation::RepeatableRead, OltpIsolation::Serializable] {
        let outcome = loaded(&connect, &OltpPlan { isolation, retries: 1_000, ..plan() });
        assert_sound(&outcome);
        let failures: u64 = outcome.transactions.values().map(|one| one.serialization_failures).sum();
        assert!(failures > 0, "users of one warehouse get in each other's way under {isolation:?}");
    }
    open_loop_and_own_mix(&connect);
    broken_conditions_are_found(&server, &connect);
    too_many_users_are_refused(&connect);
}

#[test]
fn mariadb_is_populated_loaded_and_stays_consistent() {
    let (server, connect) = whole_way(DatabaseKind::MariaDb);
    open_loop_and_own_mix(&connect);
    broken_conditions_are_found(&server, &connect);
    too_many_users_are_refused(&connect);
    server.query(&["DROP TABLE orders", "CREATE TABLE orders (x int)"]).unwrap();
    let error = populate(&connect, POPULATION, true, &NEVER, &mut |_| {}).unwrap_err();
    assert!(matches!(&error, OltpError::Foreign { table, .. } if table == "orders"), "{error}");
    assert_ne!(server.query(&["SELECT COUNT(*) FROM stock"]).unwrap()[0][0], "0");
}

fn open_loop_and_own_mix(connect: &Connect) {
    let mix = OltpMix { shares: [0, 1, 1, 0, 0], choice: OltpChoice::Weights };
    // Few, so that a host with more to do keeps up as well.
    let rate = Rate { per_second: 10.0, arrivals: Arrivals::Constant };
    let outcome = loaded(connect, &OltpPlan { rate: Some(rate), mix, deferred_delivery: false, ..plan() });
    let open = outcome.open_loop.unwrap();
    assert_eq!((open.offered, open.saturated, outcome.deferred), (20, false, None));
    let kinds: BTreeSet<&str> = outcome
        .transactions
        .iter()
        .filter(|(_, one)| one.completed > 0)
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(kinds, BTreeSet::from(["order_status", "payment"]));
    let completed: u64 = outcome.transactions.values().map(|one| one.completed).sum();
    assert!((16..=24).contains(&completed), "{completed} of 20");
    let beyond = Rate { per_second: 1e6, arrivals: Arrivals::Poisson };
    let outcome = loaded(connect, &OltpPlan { rate: Some(beyond), ..brief() });
    assert!(
        outcome.open_loop.unwrap().saturated && outcome.notes.iter().any(|note| note.contains("keep up"))
    );
    // From the intended start: what waits for its turn has waited long.
    assert!(outcome.transactions["payment"].latency_ns.unwrap().max > 500_000_000);
}

fn broken_conditions_are_found(server: &LocalServer, connect: &Connect) {
    let breaks: [(u32, &str); 4] = [
        (1, "UPDATE warehouse SET w_ytd = w_ytd + 1"),
        (2, "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 3"),
        (3, "DELETE FROM new_order WHERE no_d_id = 4 AND no_o_id = 2950"),
        (4, "DELETE FROM order_line WHERE ol_d_id = 5 AND ol_o_id = 100 AND ol_number = 1"),
    ];
    for (number, statement) in breaks {
        server.query(&[statement]).unwrap();
        let checked = check(connect, Depth::Required, &NEVER, &mut |_| {}).unwrap();
        let found = checked.broken.iter().find(|broken| broken.condition == number).expect(statement);
        assert!(found.rows.iter().all(|row| row.contains("w_id=1")), "{found:?}");
    }
    // What was measured stands whatever the check finds.
    let outcome = loaded(connect, &brief());
    assert!(outcome.transactions_per_second > 0.0 && outcome.conditions_held.is_empty(), "{outcome:?}");
    let numbers: Vec<u32> = outcome.conditions_broken.iter().map(|broken| broken.condition).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
    assert_eq!(outcome.conditions_broken[0].words, "W_YTD = sum(D_YTD)");
}

fn too_many_users_are_refused(connect: &Connect) {
    let error = run(connect, &OltpPlan { users: 60, ..plan() }, &NEVER, &mut |_| {}).unwrap_err();
    assert!(matches!(error, OltpError::TooManyUsers { users: 60, .. }), "{error}");
}

#[test]
fn a_server_that_crashes_in_the_middle_leaves_what_was_measured() {
    let (mut server, connect) = populated_server(DatabaseKind::PostgreSql);
    let long = OltpPlan { ramp_up_ns: 0, time_ns: 30_000_000_000, ..plan() };
    let pid = server.process();
    let mut seconds = 0;
    let outcome = run(&connect, &long, &NEVER, &mut |event| {
        seconds += u32::from(matches!(event, LoadEvent::Second(_)));
        if seconds == 2 && matches!(event, LoadEvent::Second(_)) {
            rustix::process::kill_process(
                rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(),
                rustix::process::Signal::QUIT,
            )
            .unwrap();
        }
    });
    let outcome = outcome.unwrap();
    assert!(outcome.ended_by.is_some() && outcome.interrupted, "{outcome:?}");
    assert!((1_900_000_000..9_000_000_000).contains(&outcome.elapsed_ns), "{}", outcome.elapsed_ns);
    assert!(outcome.transactions_per_second > 0.0 && outcome.conditions_held.is_empty());
    server.crash().unwrap();
    let error = run(&connect, &long, &NEVER, &mut |_| {}).unwrap_err();
    assert_eq!(error.fault(), Some(FaultKind::Refused), "{error}");
    assert!(error.to_string().contains("check that PostgreSQL runs"), "{error}");
}

#[test]
fn what_stops_a_population_leaves_nothing_and_foreign_tables_stay() {
    let server = server(DatabaseKind::PostgreSql);
    let connect = server.connect();
    let stop = AtomicBool::new(false);
    let stopped = populate(&connect, Population { warehouses: 4, seed: 1 }, false, &stop, &mut |progress| {
        stop.store(progress.rows > 100_000, std::sync::atomic::Ordering::Relaxed);
    });
    let stopped = stopped.unwrap_err();
    assert!(
        matches!(&stopped, OltpError::Abandoned { why, left: Left::Nothing } if why.is_stop()),
        "{stopped}"
    );
    let count = "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'public'";
    assert_eq!(server.query(&[count]).unwrap(), [["0"]]);
    strangers_stay_beside_ours(&server);
}

/// Tables of others with the names of ours: in another schema of the search path, and in the schema of ours.
fn strangers_stay_beside_ours(server: &LocalServer) {
    let rows = |table: &str| server.query(&[&format!("SELECT COUNT(*) FROM {table}")]).unwrap()[0][0].clone();
    server
        .query(&[
            "CREATE TABLE public.orders AS SELECT 1 AS x",
            "CREATE ROLE clerk LOGIN",
            "CREATE SCHEMA AUTHORIZATION clerk",
            "GRANT ALL ON public.orders TO clerk",
        ])
        .unwrap();
    let refused = |connect: &Connect| {
        let error = populate(connect, POPULATION, true, &NEVER, &mut |_| {}).unwrap_err();
        assert!(matches!(&error, OltpError::Foreign { table, .. } if table == "orders"), "{error}");
        error.to_string()
    };
    assert!(refused(&server.connect()).contains("schema public"));
    let mut clerk = server.connect();
    clerk.address.user = "clerk".into();
    let made = populate(&clerk, POPULATION, false, &NEVER, &mut |_| {}).unwrap();
    assert_eq!((made.schema.as_str(), rows("public.orders").as_str()), ("clerk", "1"));
    assert_eq!(find_population(&clerk).unwrap(), POPULATION);
    let elsewhere = find_population(&server.connect()).unwrap_err();
    assert!(elsewhere.to_string().contains("not populated in schema public"), "{elsewhere}");
    let mut named = server.connect();
    named.address.schema = Some("clerk".into());
    assert_eq!(find_population(&named).unwrap(), POPULATION);
    server.query(&["DROP TABLE clerk.orders", "CREATE TABLE clerk.orders (x int)"]).unwrap();
    assert!(refused(&clerk).contains("schema clerk"));
    assert_ne!(rows("clerk.stock"), "0", "nothing is removed beside a stranger");
    server.query(&["DROP TABLE clerk.orders"]).unwrap();
    two_at_once_exclude_each_other(&clerk);
    assert_eq!(rows("public.orders"), "1");
    // What an earlier version made has no marks, and is left to its owner.
    let unmark = "DO $$ DECLARE name text; BEGIN FOR name IN SELECT table_name FROM information_schema.tables \
                  WHERE table_schema = 'clerk' LOOP EXECUTE format('COMMENT ON TABLE clerk.%I IS NULL', name); \
                  END LOOP; END $$";
    server.query(&["COMMENT ON TABLE clerk.virtbench_oltp IS NULL"]).unwrap();
    let error = populate(&clerk, POPULATION, true, &NEVER, &mut |_| {}).unwrap_err();
    assert!(matches!(&error, OltpError::Foreign { table, .. } if table == "virtbench_oltp"), "{error}");
    server.query(&[unmark]).unwrap();
    let error = populate(&clerk, POPULATION, true, &NEVER, &mut |_| {}).unwrap_err();
    assert!(matches!(error, OltpError::Earlier(..)), "{error}");
    assert_ne!(rows("clerk.stock"), "0");
}

/// What is there is unfinished, so that both may replace it.
fn two_at_once_exclude_each_other(connect: &Connect) {
    let unfinished = find_population(connect).unwrap_err();
    assert!(matches!(unfinished, OltpError::Unfinished(..)), "{unfinished}");
    let begin = Barrier::new(2);
    let one = || {
        begin.wait();
        populate(connect, POPULATION, true, &NEVER, &mut |_| {})
    };
    let both = thread::scope(|scope| {
        let other = scope.spawn(one);
        let mine = one();
        [mine, other.join().unwrap()]
    });
    let busy: Vec<&OltpError> = both.iter().filter_map(|done| done.as_ref().err()).collect();
    assert!(matches!(busy.as_slice(), [OltpError::Busy { .. }]), "{both:?}");
    assert_eq!(find_population(connect).unwrap(), POPULATION);
}

#[test]
fn a_stopped_load_keeps_what_was_measured() {
    let (_server, connect) = populated_server(DatabaseKind::PostgreSql);
    let stop = AtomicBool::new(false);
    let long = OltpPlan { ramp_up_ns: 0, time_ns: 60_000_000_000, think_factor: Some(0.01), ..plan() };
    let begun = std::time::Instant::now();
    let outcome = run(&connect, &long, &stop, &mut |event| {
        if matches!(event, LoadEvent::Second(_)) {
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let outcome = outcome.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(20));
    assert!(outcome.interrupted && outcome.ended_by.is_none() && outcome.conditions_held == [1, 2, 3, 4]);
}

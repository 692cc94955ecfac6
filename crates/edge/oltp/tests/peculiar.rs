//! Servers that are set up otherwise, refuse something, or meddle.

use virtbench_oltp::{
    Connect, Depth, FaultKind, LocalServer, OltpError, Population, check, find_population, populate, run,
};
use virtbench_record::{DatabaseKind, OltpPlan};

use crate::databases::{
    NEVER, POPULATION, loaded, plan, populated, populated_server, populated_server_with, server,
};

/// How a load of such a user ended, in the words that a user sees.
fn ended(connect: &Connect, load: &OltpPlan) -> String {
    match run(connect, load, &NEVER, &mut |_| {}) {
        Ok(outcome) => outcome.ended_by.unwrap_or_else(|| panic!("it went well")),
        Err(error) => error.to_string(),
    }
}

#[test]
fn mariadb_means_what_we_say_whatever_its_defaults_are() {
    for mode in ["NO_BACKSLASH_ESCAPES,ANSI_QUOTES,PIPES_AS_CONCAT,PAD_CHAR_TO_FULL_LENGTH", ""] {
        let settings = [
            "innodb-flush-log-at-trx-commit=0",
            "innodb-buffer-pool-size=256M",
            "wait-timeout=1",
            &format!("sql-mode={mode}"),
        ];
        let server = LocalServer::start(DatabaseKind::MariaDb, &settings).unwrap();
        let connect = populated(&server);
        let nulls = "SELECT SUM(o_carrier_id IS NULL), SUM(o_carrier_id = 0) FROM orders";
        assert_eq!(server.query(&[nulls]).unwrap(), [["9000.00", "0.00"]], "{mode}");
        // A user thinks for longer than the server's limit for connections that are idle.
        let thinks = OltpPlan { think_factor: Some(0.15), time_ns: 4_000_000_000, ..plan() };
        let outcome = loaded(&connect, &thinks);
        assert_eq!((outcome.failed(), outcome.ended_by), (0, None));
        assert_eq!(check(&connect, Depth::All, &NEVER, &mut |_| {}).unwrap().held.len(), 11);
    }
}

/// A trigger that somebody's rule adds to each table called history.
const MEDDLER: [&str; 3] = [
    "CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS \
     $$ BEGIN NEW.h_data := 'x'; RETURN NEW; END $$",
    "CREATE FUNCTION attach() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN \
     IF to_regclass('public.history') IS NOT NULL \
     AND NOT EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = to_regclass('public.history')) THEN \
     CREATE TRIGGER meddle BEFORE INSERT ON public.history FOR EACH ROW EXECUTE FUNCTION meddle(); END IF; END $$",
    "CREATE EVENT TRIGGER attach ON ddl_command_end WHEN TAG IN ('CREATE TABLE') EXECUTE FUNCTION attach()",
];

#[test]
fn rows_that_are_not_those_that_were_sent_are_found() {
    let server = server(DatabaseKind::PostgreSql);
    server.query(&MEDDLER).unwrap();
    let error = populate(&server.connect(), POPULATION, false, &NEVER, &mut |_| {}).unwrap_err();
    let OltpError::Abandoned { why, .. } = &error else { panic!("{error}") };
    assert!(matches!(**why, OltpError::Different { table: "history", .. }), "{error}");
    assert!(matches!(find_population(&server.connect()), Err(OltpError::NotPopulated(..))));
}

#[test]
fn what_the_server_says_is_told() {
    let (server, connect) = populated_server(DatabaseKind::PostgreSql);
    server
        .query(&[
            "CREATE ROLE reader LOGIN",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
            "CREATE ROLE frozen LOGIN SUPERUSER",
            "ALTER ROLE frozen SET default_transaction_read_only = on",
        ])
        .unwrap();
    let as_user = |user: &str| {
        let mut connect = connect.clone();
        connect.address.user = user.into();
        connect
    };
    for (user, words, remedy) in [
        ("reader", "permission denied for table", "grant the rights"),
        ("frozen", "in a read-only transaction", "name its primary"),
    ] {
        let said = ended(&as_user(user), &OltpPlan { ramp_up_ns: 0, ..plan() });
        assert!(said.contains(words) && said.contains(remedy), "{user}: {said}");
        let said = populate(&as_user(user), POPULATION, true, &NEVER, &mut |_| {}).unwrap_err().to_string();
        assert!(
            ["permission denied", "must be owner", words].iter().any(|words| said.contains(words)),
            "{said}"
        );
        assert_eq!(find_population(&connect).unwrap(), POPULATION, "{user} has removed nothing");
    }
}

#[test]
fn mariadb_says_what_it_refuses() {
    let (server, connect) = populated_server(DatabaseKind::MariaDb);
    server.query(&["CREATE USER reader@localhost", "GRANT SELECT ON bench.* TO reader@localhost"]).unwrap();
    let mut reader = connect.clone();
    reader.address.user = "reader".into();
    let load = OltpPlan { ramp_up_ns: 0, ..plan() };
    let said = ended(&reader, &load);
    assert!(said.contains("command denied to user 'reader'") && said.contains("grant the rights"), "{said}");
    server.query(&["GRANT ALL ON bench.* TO reader@localhost", "SET GLOBAL read_only = 1"]).unwrap();
    let said = ended(&reader, &load);
    assert!(said.contains("read-only") && said.contains("name its primary"), "{said}");
}

#[test]
fn users_who_think_outlast_the_servers_limits_for_idle_connections() {
    let settings = ["fsync=off", "idle_session_timeout=1s", "idle_in_transaction_session_timeout=1s"];
    let (_server, connect) = populated_server_with(DatabaseKind::PostgreSql, &settings);
    let outcome = loaded(&connect, &OltpPlan { think_factor: Some(0.15), time_ns: 4_000_000_000, ..plan() });
    assert_eq!((outcome.failed(), outcome.ended_by), (0, None));
}

#[test]
fn a_standby_is_refused_by_name() {
    let (mut server, connect) = populated_server(DatabaseKind::PostgreSql);
    server.restart_as_standby().unwrap();
    let error = run(&connect, &plan(), &NEVER, &mut |_| {}).unwrap_err();
    assert!(matches!(error, OltpError::Standby(_)), "{error}");
    let error = populate(&connect, POPULATION, true, &NEVER, &mut |_| {}).unwrap_err();
    assert!(matches!(error, OltpError::Standby(_)), "{error}");
    // It can be looked at.
    assert_eq!(check(&connect, Depth::Required, &NEVER, &mut |_| {}).unwrap().held, [1, 2, 3, 4]);
}

#[test]
fn mysql_is_refused_by_name() {
    let server = LocalServer::start(DatabaseKind::MariaDb, &["version=8.0.36"]).unwrap();
    let connect = server.connect();
    let populated = populate(&connect, POPULATION, false, &NEVER, &mut |_| {}).map(drop);
    let loaded = run(&connect, &plan(), &NEVER, &mut |_| {}).map(drop);
    for done in [populated, loaded] {
        let error = done.unwrap_err();
        assert!(matches!(&error, OltpError::NotMariaDb(version) if version.starts_with("8.0.36")), "{error}");
    }
}

#[test]
fn few_users_of_many_warehouses_are_remarked_on() {
    let server = server(DatabaseKind::PostgreSql);
    let connect = server.connect();
    populate(&connect, Population { warehouses: 2, seed: 1 }, false, &NEVER, &mut |_| {}).unwrap();
    let remarked = |users: u32| {
        let outcome = loaded(&connect, &OltpPlan { users, threads: 1, time_ns: 500_000_000, ..plan() });
        outcome.notes.iter().any(|note| note.contains("1 of 2 warehouses"))
    };
    assert_eq!([1, 2].map(remarked), [true, false]);
    let refused = Connect { address: connect.address.clone(), password: None };
    assert_eq!(
        run(&refused, &OltpPlan { users: 60, ..plan() }, &NEVER, &mut |_| {}).unwrap_err().fault(),
        None::<FaultKind>
    );
}

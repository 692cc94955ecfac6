//! `virtbench oltp` as a user runs it, on a server of the test's own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::support::{Finished, finish, folder, long_figures, run, signal, virtbench, wait_for};
use virtbench_oltp::LocalServer;
use virtbench_record::{DatabaseKind, OltpOutcome};

fn server() -> LocalServer {
    LocalServer::start(DatabaseKind::PostgreSql, &["fsync=off", "max_connections=20"]).unwrap()
}

fn oltp(server: &LocalServer, words: &[&str]) -> Finished {
    let database = server.connect().address.to_string();
    finish(command(&database, words).spawn().unwrap())
}

fn command(database: &str, words: &[&str]) -> Command {
    let mut command = virtbench();
    command.arg("oltp").args(&words[..1]).args(["--database", database]).args(&words[1..]);
    command
}

const SHORT: [&str; 7] = ["run", "--users", "3", "--ramp", "200ms", "--time", "1s"];

#[test]
fn a_database_is_populated_loaded_and_checked_by_command() {
    let server = server();
    let early = oltp(&server, &SHORT);
    assert_eq!(early.code(), 3, "{early:?}");
    assert!(early.stderr.contains("oltp populate"), "{}", early.stderr);
    let made = oltp(&server, &["populate"]);
    assert_eq!(made.code(), 0, "{made:?}");
    assert!(
        made.stdout.contains("1 warehouses of seed 1") && made.stderr.contains("not comparable"),
        "{made:?}"
    );
    let table = oltp(&server, &SHORT);
    assert_eq!(table.code(), 0, "{table:?}");
    for words in
        ["new_order", "transactions/s", "of CPU a transaction", "conditions 1, 2, 3, 4", "not comparable"]
    {
        assert!(table.stdout.contains(words), "{words}: {}", table.stdout);
    }
    let told =
        oltp(&server, &[&SHORT[..], &["--json", "--mix", "1,1,0,0,0", "--conditions", "all"]].concat());
    assert_eq!(told.code(), 0, "{told:?}");
    let outcome: OltpOutcome = serde_json::from_str(&told.stdout).unwrap();
    assert_eq!((outcome.conditions_held.len(), outcome.plan.users, outcome.series.len()), (11, 3, 1));
    assert!(long_figures(&told.stdout).is_empty());
    let checked = oltp(&server, &["check", "--json"]);
    assert_eq!((checked.code(), checked.json()["held"].as_array().unwrap().len()), (0, 11));
    refusals(&server);
    server.query(&["UPDATE warehouse SET w_ytd = w_ytd + 1"]).unwrap();
    for words in [&["check"][..], &SHORT] {
        let broken = oltp(&server, words);
        assert_eq!(broken.code(), 8, "{broken:?}");
        assert_eq!(
            broken.stdout.contains("transactions/s"),
            words != ["check"],
            "what was measured stands: {broken:?}"
        );
        assert!(
            broken.stderr.contains("condition 1") && broken.stderr.contains("w_id=1"),
            "{}",
            broken.stderr
        );
    }
    let anew = oltp(&server, &["populate", "--replace", "--json"]);
    assert_eq!((anew.code(), &anew.json()["warehouses"]), (0, &1.into()));
    assert_eq!(oltp(&server, &["check"]).code(), 0);
}

fn refusals(server: &LocalServer) {
    for (words, code, said) in [
        (&["populate"][..], 3, "--replace"),
        (&["run", "--warehouses", "5"], 3, "has 1 warehouses, not 5"),
        (&["run", "--users", "100"], 3, "max_connections"),
        (&["run", "--mix", "0,0,0,0,0"], 2, "not zero"),
        (&["run", "--users", "2", "--threads", "3"], 2, "threads"),
        (&["run", "--password-file", "/nonexistent"], 2, "/nonexistent"),
        (&["run", "--rate", "5/s", "--think-times"], 2, "--think-times"),
    ] {
        let done = oltp(server, words);
        assert_eq!(done.code(), code, "{words:?}: {done:?}");
        assert!(done.stderr.contains(said), "{words:?}: {}", done.stderr);
    }
}

#[test]
fn addresses_that_lead_nowhere_are_named_with_what_helps() {
    let server = server();
    let address = server.connect().address.to_string();
    for (database, code, said) in [
        ("postgresql://localhost:1/tpcc".to_owned(), 3, "check that PostgreSQL runs and listens there"),
        ("mariadb://localhost:1/tpcc".to_owned(), 3, "check that MariaDB runs and listens there"),
        (address.replace("/bench?", "/none?"), 3, "CREATE DATABASE none"),
        (address.replace("postgres@", "nobody@"), 3, "check user and password"),
        ("postgresql://u:secret@localhost/tpcc".to_owned(), 2, "PGPASSWORD"),
    ] {
        let done = finish(command(&database, &["check"]).spawn().unwrap());
        assert_eq!(done.code(), code, "{database}: {done:?}");
        assert!(done.stderr.contains(said), "{database}: {}", done.stderr);
    }
    let secret = run(&["oltp", "check", "--database", "postgresql://u:secret@localhost/tpcc"]);
    assert!(!secret.stderr.contains("not comparable"), "nothing was begun");
}

#[test]
fn passwords_are_taken_from_environment_and_file_and_never_shown() {
    let server = server();
    let login = ["CREATE ROLE tester LOGIN SUPERUSER PASSWORD 'hush-hush'"];
    server.query(&login).unwrap();
    let rules = server.folder().join("data/pg_hba.conf");
    fs::write(&rules, "local all postgres trust\nlocal all all scram-sha-256\n").unwrap();
    server.query(&["SELECT pg_reload_conf()"]).unwrap();
    let database = server.connect().address.to_string().replace("postgres@", "tester@");
    let folder = folder();
    let file = folder.path().join("password");
    fs::write(&file, "hush-hush\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let refused = |command: &mut Command| {
        let done = finish(command.spawn().unwrap());
        assert_eq!(done.code(), 3, "{done:?}");
        done.stderr
    };
    let bare = wait_for("the server's new rules", || {
        let said = refused(command(&database, &["check"]).env_remove("PGPASSWORD"));
        said.contains("user and password").then_some(said)
    });
    assert!(bare.contains("PGPASSWORD"), "{bare}");
    let wrong = refused(command(&database, &["check"]).env("PGPASSWORD", "wrong-word"));
    assert!(wrong.contains("user and password") && !wrong.contains("wrong-word"), "{wrong}");
    let path = file.display().to_string();
    for said in [
        refused(command(&database, &["check"]).env("PGPASSWORD", "hush-hush")),
        refused(&mut command(&database, &["check", "--password-file", &path])),
    ] {
        assert!(said.contains("is not populated") && !said.contains("hush-hush"), "{said}");
    }
}

#[test]
fn ends_before_their_time_keep_what_was_measured_and_leave_no_connection() {
    let server = server();
    assert_eq!(oltp(&server, &["populate"]).code(), 0);
    let database = server.connect().address.to_string();
    let sessions = || {
        let count = "SELECT COUNT(*) FROM pg_stat_activity WHERE application_name = 'virtbench' AND pid <> pg_backend_pid()";
        server.query(&[count]).unwrap()[0][0].clone()
    };
    let long = ["run", "--users", "4", "--ramp", "0s", "--time", "60s", "--json"];
    let start = || {
        let child = command(&database, &long).spawn().unwrap();
        wait_for("users", || (sessions() == "5").then_some(()));
        std::thread::sleep(std::time::Duration::from_millis(1500));
        child
    };
    let child = start();
    signal(&child, "INT");
    let stopped = finish(child);
    assert_eq!(stopped.code(), 130, "{stopped:?}");
    let outcome: OltpOutcome = serde_json::from_str(&stopped.stdout).unwrap();
    assert!(outcome.interrupted && outcome.transactions_per_second > 0.0);
    assert_eq!(outcome.conditions_held, [1, 2, 3, 4]);
    let child = start();
    signal(&child, "KILL");
    assert!(!finish(child).status.success());
    wait_for("the killed users' connections to go", || (sessions() == "0").then_some(()));
    assert_eq!(oltp(&server, &["check"]).code(), 0, "a kill leaves the database consistent");
    let child = start();
    Command::new("kill").args(["-QUIT", &server.process().to_string()]).status().unwrap();
    let gone = finish(child);
    assert_eq!(gone.code(), 5, "{gone:?}");
    let outcome: OltpOutcome = serde_json::from_str(&gone.stdout).unwrap();
    assert!(outcome.ended_by.is_some() && outcome.transactions_per_second > 0.0);
    assert!(gone.stderr.contains("what was measured until then"), "{}", gone.stderr);
}

#[test]
fn what_was_measured_stands_before_the_check_which_hears_a_stop() {
    let server = server();
    assert_eq!(oltp(&server, &["populate"]).code(), 0);
    let database = server.connect().address.to_string();
    let holding = [
        "BEGIN",
        "LOCK TABLE new_order IN ACCESS EXCLUSIVE MODE",
        "SELECT CAST(pg_sleep(15) AS text)",
        "COMMIT",
    ];
    std::thread::scope(|scope| {
        scope.spawn(|| server.query(&holding).unwrap());
        std::thread::sleep(std::time::Duration::from_secs(1));
        // Payments alone do not wait for it.
        let child = command(&database, &[&SHORT[..], &["--mix", "0,1,0,0,0"]].concat()).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_secs(5));
        signal(&child, "INT");
        let stopped = finish(child);
        assert_eq!(stopped.code(), 130, "{stopped:?}");
        for words in ["payment", "transactions/s", "were not checked: stopped"] {
            assert!(stopped.stdout.contains(words), "{words}: {stopped:?}");
        }
    });
}

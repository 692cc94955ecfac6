//! `virtbench history --catalogue postgresql://...`: a team's catalogue, over encrypted connections, by the command.

use std::fs;
use std::path::Path;

use virtbench_oltp::{LocalCertificates, LocalServer};
use virtbench_record::DatabaseKind;

use crate::support::{Finished, finish, folder, run, two_environments, virtbench};

/// A server that takes encrypted connections alone from the network.
fn server(certificates: &LocalCertificates) -> LocalServer {
    let settings = certificates.settings(DatabaseKind::PostgreSql).unwrap();
    let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
    LocalServer::start(DatabaseKind::PostgreSql, &settings).unwrap()
}

/// The address of the catalogue as this user and by this name of the host.
fn address(server: &LocalServer, user: &str, host: &str, options: &str) -> String {
    format!("postgresql://{user}@{host}:{}/bench{options}", server.port())
}

fn history(words: &[&str], catalogue: &str) -> Finished {
    run(&[&["history"], words, &["--catalogue", catalogue]].concat())
}

/// Copies of a run as of so many hours.
fn copies(run: &Path, into: &Path, hours: std::ops::Range<u64>) {
    for hour in hours {
        let copy = into.join(hour.to_string());
        fs::create_dir_all(&copy).unwrap();
        fs::copy(run.join("results.jsonl"), copy.join("results.jsonl")).unwrap();
        let text = fs::read_to_string(run.join("run.json")).unwrap();
        let mut provenance: serde_json::Value = serde_json::from_str(&text).unwrap();
        provenance["started_unix_s"] = (provenance["started_unix_s"].as_u64().unwrap() + hour * 3600).into();
        fs::write(copy.join("run.json"), provenance.to_string()).unwrap();
    }
}

fn listed(done: &Finished) -> usize {
    assert_eq!(done.code(), 0, "{done:?}");
    done.json()["runs"].as_array().unwrap().len()
}

#[test]
fn a_catalogue_is_filled_over_encrypted_connections_and_only_a_known_authority_is_believed() {
    let (certificates, stranger) = (LocalCertificates::make().unwrap(), LocalCertificates::make().unwrap());
    let (server, folder) = (server(&certificates), folder());
    let first = two_environments(folder.path(), "first", 1);
    let runs = folder.path().join("runs");
    copies(&first, &runs, 0..3);
    let runs = runs.display().to_string();
    let by = |certificates: &LocalCertificates, mode: &str| {
        format!("?sslmode={mode}&sslrootcert={}", certificates.authority().display())
    };
    for (host, options, said) in [
        ("localhost", by(&stranger, "verify-full"), "sslrootcert=FILE"),
        ("127.0.0.1", by(&certificates, "verify-full"), "sslrootcert=FILE"),
        ("localhost", "?sslmode=verify-full&sslrootcert=/nonexistent.pem".into(), "/nonexistent.pem"),
        ("localhost", String::new(), "sslmode=require"),
    ] {
        let refused = history(&["list", &runs], &address(&server, "postgres", host, &options));
        assert_eq!(refused.code(), 7, "{host} {options}: {refused:?}");
        assert!(refused.stderr.contains(said), "{host} {options}: {}", refused.stderr);
    }
    let nothing =
        server.query(&["SELECT count(*)::text FROM pg_namespace WHERE nspname = 'virtbench_history'"]);
    assert_eq!(nothing.unwrap(), [["0"]], "nobody who was refused has made anything");
    let verified = address(&server, "postgres", "localhost", &by(&certificates, "verify-full"));
    assert_eq!(listed(&history(&["list", &runs, "--json"], &verified)), 3);
    for (host, options) in
        [("127.0.0.1", by(&certificates, "verify-ca")), ("127.0.0.1", "?sslmode=require".into())]
    {
        let again = history(&["list", "--json"], &address(&server, "postgres", host, &options));
        assert_eq!(listed(&again), 3, "{options}");
    }
}

#[test]
fn a_reader_lists_and_is_told_what_it_may_not_and_writers_meet() {
    let certificates = LocalCertificates::make().unwrap();
    let (server, folder) = (server(&certificates), folder());
    let first = two_environments(folder.path(), "first", 1);
    let encrypted = |user: &str| address(&server, user, "127.0.0.1", "?sslmode=require");
    server.query(&["CREATE ROLE reader LOGIN"]).unwrap();
    let early = history(&["list"], &encrypted("reader"));
    assert_eq!(early.code(), 7, "{early:?}");
    for words in ["permission denied", "once as one that may", "GRANT USAGE ON SCHEMA virtbench_history"] {
        assert!(early.stderr.contains(words), "{words}: {}", early.stderr);
    }

    // Four at once, which begin without any tables.
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let runs = folder.path().join(format!("runs-{writer}"));
            copies(&first, &runs, 10 * writer..10 * writer + 5);
            let mut command = virtbench();
            command.args(["history", "list", "--catalogue", &encrypted("postgres")]).arg(runs);
            command.spawn().unwrap()
        })
        .collect();
    for writer in writers {
        let done = finish(writer);
        assert_eq!(done.code(), 0, "{done:?}");
    }
    assert_eq!(listed(&history(&["list", "--json"], &encrypted("postgres"))), 20);

    server
        .query(&[
            "GRANT USAGE ON SCHEMA virtbench_history TO reader",
            "GRANT SELECT ON ALL TABLES IN SCHEMA virtbench_history TO reader",
        ])
        .unwrap();
    let read = history(&["list", "--json"], &encrypted("reader"));
    assert_eq!(listed(&read), 20);
    assert!(read.stderr.contains("can only be read: no folder was looked through"), "{}", read.stderr);
    let runs = folder.path().join("runs-0").display().to_string();
    for words in [&["list", &runs][..], &["page", &runs], &["rebuild"], &["rebuild", &runs]] {
        let refused = history(words, &encrypted("reader"));
        assert_eq!(refused.code(), 7, "{words:?}: {refused:?}");
        assert!(
            refused.stderr.contains("can only be read")
                && refused.stderr.contains("as a role that may write"),
            "{words:?}: {}",
            refused.stderr
        );
    }

    // The run folders are the truth: whatever the tables hold, a rebuild makes them what is there.
    fs::remove_dir_all(folder.path().join("runs-3")).unwrap();
    server.query(&["UPDATE virtbench_history.runs SET measures = '[]', study = 'lost'"]).unwrap();
    let rebuilt = history(&["rebuild"], &encrypted("postgres"));
    assert_eq!(rebuilt.code(), 0, "{rebuilt:?}");
    assert!(rebuilt.stdout.contains("15 runs read again, 5 forgotten"), "{}", rebuilt.stdout);
    let list = history(&["list", "--json", "--study", "compare"], &encrypted("postgres"));
    assert_eq!(listed(&list), 15);
    server.query(&["UPDATE virtbench_history.version SET format = format + 1"]).unwrap();
    let later = history(&["list"], &encrypted("postgres"));
    assert!(later.code() == 7 && later.stderr.contains("a later version"), "{later:?}");
}

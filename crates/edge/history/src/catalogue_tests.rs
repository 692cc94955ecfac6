#![allow(clippy::unwrap_used)]

use super::*;
use crate::found::{read_tags, write_tags};
use crate::store::FORMAT;
use rusqlite::Connection;
use serde_json::json;

/// The tables as format 3 had them, with a row of a machine `a` whose folder is elsewhere.
pub(super) const FORMAT_3: &str = r#"
    CREATE TABLE version (format INTEGER NOT NULL);
    CREATE TABLE roots (machine TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (machine, path));
    CREATE TABLE runs (
        machine TEXT NOT NULL, folder TEXT NOT NULL, state TEXT NOT NULL, started_unix_s BIGINT NOT NULL, study TEXT NOT NULL,
        parts TEXT NOT NULL, identity TEXT NOT NULL, load TEXT NOT NULL, host TEXT NOT NULL, versions TEXT NOT NULL,
        tags TEXT NOT NULL, measures TEXT NOT NULL, PRIMARY KEY (machine, folder)
    );
    CREATE TABLE unreadable (
        machine TEXT NOT NULL, folder TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (machine, folder)
    );
    INSERT INTO version VALUES (3);
    INSERT INTO runs VALUES ('a', '/elsewhere', 'x', 5, 'compare', '{}', 'i', 'null', 'h', '{}', '[]', '[]');"#;

/// Goes on, and tells nobody.
pub(super) fn quietly(_: usize, _: usize) -> bool {
    true
}

/// A run of which nothing was measured yet.
pub(super) fn run(folder: &Path, started_unix_s: u64, cpu: &str) {
    fs::create_dir_all(folder).unwrap();
    let plan = json!({
        "study": "native-vs-vm", "grid": "quick", "blocks_bytes": [4096], "read_percents": [100], "random_percents": [0],
        "repetitions": 1, "outstanding": 1, "workers": 1, "ramp_ns": 0, "time_ns": 1, "size_bytes": 4096,
        "environments": ["native"], "seed": started_unix_s,
    });
    let host = json!({
        "kernel": "6.1", "distribution": "d", "cpu": cpu, "processors": 2, "memory_bytes": 1, "hypervisor": null,
        "disk": {"filesystem": "ext4", "device": "vda", "rotational": null, "scheduler": null, "write_cache": null},
    });
    let provenance = json!({
        "format": 2, "version": "1", "command": [], "started_unix_s": started_unix_s, "plan": plan, "host": host,
        "guest": null, "notes": [],
    });
    fs::write(folder.join("run.json"), provenance.to_string()).unwrap();
}

fn folders(catalogue: &Catalogue, filter: &Filter) -> Vec<String> {
    let runs = catalogue.runs(filter).unwrap();
    let name = |folder: &str| Path::new(folder).file_name().unwrap().to_string_lossy().into_owned();
    runs.iter().map(|run| name(&run.folder)).collect()
}

#[test]
fn runs_are_found_once_and_forgotten_when_they_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("runs");
    for (name, at) in [("b", 2), ("deeper/a", 1), (".hidden/c", 3), ("b/inside", 4)] {
        run(&root.join(name), at, "cpu");
    }
    fs::create_dir_all(root.join("damaged")).unwrap();
    fs::write(root.join("damaged/run.json"), "{").unwrap();
    let mut catalogue = Catalogue::open(folder.path().join("new/history.sqlite")).unwrap();
    let scanned = catalogue.scan(std::slice::from_ref(&root), &mut quietly).unwrap();
    assert_eq!((scanned.read, scanned.unchanged, scanned.unreadable.len()), (2, 0, 1));
    assert_eq!(folders(&catalogue, &Filter::default()), ["a", "b"]);
    let runs = catalogue.runs(&Filter::default()).unwrap();
    assert_eq!(runs[0].parts, runs[1].parts, "the seed makes no difference");
    assert_ne!(runs[0].identity, runs[1].identity);

    let again = catalogue.refresh(&mut quietly).unwrap();
    assert_eq!((again.read, again.unchanged, again.unreadable.len(), again.gone), (0, 2, 1, 0));
    fs::remove_dir_all(root.join("b")).unwrap();
    run(&root.join("deeper/a"), 7, "another cpu");
    let later = catalogue.refresh(&mut quietly).unwrap();
    assert_eq!((later.read, later.gone), (1, 1));
    assert_eq!(catalogue.runs(&Filter::default()).unwrap()[0].started_unix_s, 7);
}

#[test]
fn filters_take_runs_by_folder_study_host_tag_and_time() {
    let folder = tempfile::tempdir().unwrap();
    for (name, at, cpu) in [("one", 10, "EPYC"), ("two", 20, "Xeon"), ("three", 30, "EPYC")] {
        run(&folder.path().join(name), at, cpu);
    }
    write_tags(&folder.path().join("one"), &["before".into()], &[]).unwrap();
    let mut catalogue = Catalogue::open(folder.path().join("history.sqlite")).unwrap();
    catalogue.scan(&[folder.path().to_owned()], &mut quietly).unwrap();
    let shown = |filter: Filter| folders(&catalogue, &filter);
    assert_eq!(shown(Filter { host: Some("epyc".into()), ..Filter::default() }), ["one", "three"]);
    assert_eq!(shown(Filter { since_unix_s: 20, ..Filter::default() }), ["two", "three"]);
    assert_eq!(shown(Filter { tags: vec!["before".into()], ..Filter::default() }), ["one"]);
    assert_eq!(shown(Filter { folders: vec![folder.path().join("two")], ..Filter::default() }), ["two"]);
    assert!(shown(Filter { study: Some("adapters".into()), ..Filter::default() }).is_empty());
}

#[test]
fn tags_outlive_the_catalogue() {
    let folder = tempfile::tempdir().unwrap();
    let (one, path) = (folder.path().join("one"), folder.path().join("history.sqlite"));
    run(&one, 1, "cpu");
    assert!(write_tags(folder.path(), &["x".into()], &[]).is_err(), "there is no run");
    assert!(write_tags(&one, &["two words".into()], &[]).is_err());
    write_tags(&one, &["release/1.0".into(), "slow".into()], &[]).unwrap();
    assert_eq!(Vec::from_iter(write_tags(&one, &[], &["slow".into()]).unwrap()), ["release/1.0"]);
    assert_eq!(read_tags(&one).unwrap().len(), 1);
    for _ in 0..2 {
        let mut catalogue = Catalogue::open(&path).unwrap();
        catalogue.scan(&[folder.path().to_owned()], &mut quietly).unwrap();
        assert_eq!(catalogue.runs(&Filter::default()).unwrap()[0].tags, ["release/1.0"]);
        drop(catalogue);
        fs::remove_file(&path).unwrap();
    }
}

#[test]
fn another_programs_file_is_never_touched() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("notes.txt");
    fs::write(&text, "not a database, but long enough to have a header of a hundred bytes. ".repeat(3))
        .unwrap();
    let foreign = folder.path().join("foreign.sqlite");
    Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE theirs (a)").unwrap();
    for path in [&text, &foreign] {
        let before = fs::read(path).unwrap();
        assert!(matches!(Catalogue::open(path), Err(CatalogueError::Foreign(_))), "{}", path.display());
        assert_eq!(fs::read(path).unwrap(), before);
    }
}

#[test]
fn a_file_of_an_earlier_version_is_migrated_and_one_of_a_later_version_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    run(&folder.path().join("one"), 1, "cpu");
    let connection = Connection::open(&path).unwrap();
    let root = folder.path().display();
    let words = format!(
        "{FORMAT_3} INSERT INTO roots VALUES ('a', '{root}');
         INSERT INTO unreadable VALUES ('a', '{root}/one', '{}', 'of a later version');
         PRAGMA application_id = 1986160739; PRAGMA user_version = 3;",
        state(&folder.path().join("one"))
    );
    connection.execute_batch(&words).unwrap();
    drop(connection);
    let to_read = Catalogue::open_to_read(&path).unwrap().unwrap();
    assert_eq!(folders(&to_read, &Filter::default()), ["elsewhere"], "it is read as it is");
    drop(to_read);
    let mut catalogue = Catalogue::open_as(Place::File(path.clone()), "a".into()).unwrap();
    assert_eq!(folders(&catalogue, &Filter::default()), ["elsewhere"], "what is in it is kept");
    let scanned = catalogue.refresh(&mut quietly).unwrap();
    assert_eq!((scanned.read, scanned.gone), (1, 1), "what an earlier version could not read is read now");
    assert_eq!(catalogue.refresh(&mut quietly).unwrap().unchanged, 1);
    drop(catalogue);

    let connection = Connection::open(&path).unwrap();
    connection.pragma_update(None, "user_version", FORMAT + 1).unwrap();
    drop(connection);
    let before = fs::read(&path).unwrap();
    let errors = [
        Catalogue::open(&path).map(drop).unwrap_err(),
        Catalogue::open_to_read(&path).map(drop).unwrap_err(),
    ];
    for error in errors {
        let words = error.to_string();
        assert!(
            matches!(error, CatalogueError::Later { .. }) && words.contains("another --catalogue"),
            "{words}"
        );
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn a_rebuild_reads_every_run_again_and_keeps_what_was_read_where_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("runs");
    for number in 0..6 {
        run(&root.join(number.to_string()), number, "cpu");
    }
    let mut catalogue = Catalogue::open(folder.path().join("history.sqlite")).unwrap();
    let mut two = |place, of| {
        assert_eq!(of, 6);
        place < 2
    };
    let stopped = catalogue.scan(std::slice::from_ref(&root), &mut two).unwrap();
    assert!(stopped.stopped && stopped.read == 2, "{stopped:?}");
    assert_eq!(folders(&catalogue, &Filter::default()), ["0", "1"]);
    let rest = catalogue.refresh(&mut quietly).unwrap();
    assert_eq!((rest.read, rest.unchanged, rest.stopped), (4, 2, false), "the rest is read next time");
    fs::remove_dir_all(root.join("5")).unwrap();
    let stopped = catalogue.rebuild(&[], &mut |place, _| place < 1).unwrap();
    assert_eq!((stopped.read, stopped.gone, stopped.stopped), (1, 1, true));
    assert_eq!(folders(&catalogue, &Filter::default()).len(), 5, "what was not read again stays");
    let again = catalogue.rebuild(&[], &mut quietly).unwrap();
    assert_eq!((again.read, again.unchanged, again.gone), (5, 0, 0));
}

#[test]
fn a_catalogue_without_machines_keeps_the_folders_to_look_through() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("history.sqlite");
    run(&folder.path().join("one"), 1, "cpu");
    let connection = Connection::open(&path).unwrap();
    let root = folder.path().display();
    let words = format!(
        "CREATE TABLE roots (path TEXT PRIMARY KEY) WITHOUT ROWID; INSERT INTO roots VALUES ('{root}');
         CREATE TABLE runs (folder TEXT PRIMARY KEY); CREATE TABLE unreadable (folder TEXT PRIMARY KEY);
         PRAGMA application_id = 1986160739; PRAGMA user_version = 2;"
    );
    connection.execute_batch(&words).unwrap();
    drop(connection);
    assert_eq!(Catalogue::open(&path).unwrap().refresh(&mut quietly).unwrap().read, 1);
}

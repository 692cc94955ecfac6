//! The catalogue that a team shares, in a PostgreSQL of this test's own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::tempdir;
use virtbench_oltp::{Address, Connect, LocalServer};
use virtbench_record::DatabaseKind;

use super::tests::run;
use super::*;
use crate::store::FORMAT;

fn server() -> LocalServer {
    LocalServer::start(DatabaseKind::PostgreSql, &["fsync=off"]).unwrap()
}

fn place(server: &LocalServer) -> Place {
    Place::Server(Box::new(server.connect()))
}

/// The catalogue as a machine of this name opens it.
fn on(machine: &str, place: &Place) -> Catalogue {
    Catalogue::open_as(place.clone(), machine.into()).unwrap()
}

fn folders(catalogue: &Catalogue) -> Vec<String> {
    catalogue.runs(&Filter::default()).unwrap().into_iter().map(|run| run.folder).collect()
}

#[test]
fn machines_share_a_catalogue_and_each_forgets_only_its_own_runs() {
    let (server, folder) = (server(), tempdir().unwrap());
    let (place, root) = (place(&server), folder.path().to_owned());
    for (name, at) in [("one", 1), ("two", 2)] {
        run(&root.join(name), at, "cpu");
    }
    fs::create_dir(root.join("damaged")).unwrap();
    fs::write(root.join("damaged/run.json"), "{").unwrap();
    let (mut a, mut b) = (on("a", &place), on("b", &place));
    let scanned = a.scan(std::slice::from_ref(&root)).unwrap();
    assert_eq!((scanned.read, scanned.unreadable.len()), (2, 1));
    assert_eq!(b.scan(std::slice::from_ref(&root)).unwrap().read, 2, "a folder is one of its machine");
    let one = root.join("one").display().to_string();
    assert_eq!(
        folders(&b).iter().filter(|folder| **folder == one || **folder == format!("a:{one}")).count(),
        2
    );
    let again = a.refresh().unwrap();
    assert_eq!((again.read, again.unchanged, again.unreadable.len(), again.gone), (0, 2, 1, 0));

    fs::remove_dir_all(root.join("two")).unwrap();
    assert_eq!(a.refresh().unwrap().gone, 1);
    let two = root.join("two").display().to_string();
    assert!(!folders(&a).contains(&two) && folders(&a).contains(&format!("b:{two}")), "{:?}", folders(&a));
    assert!(!a.is_read_only());
}

#[test]
fn several_make_the_tables_and_write_at_once() {
    let (server, folder) = (server(), tempdir().unwrap());
    for number in 0..8 {
        run(&folder.path().join(number.to_string()), number, "cpu");
    }
    let roots = [folder.path().to_owned()];
    std::thread::scope(|scope| {
        for writer in 0..4 {
            let (place, roots) = (place(&server), &roots);
            // Two of each machine: they write the same rows.
            scope.spawn(move || on(["a", "b"][writer % 2], &place).scan(roots).unwrap());
        }
    });
    assert_eq!(folders(&on("a", &place(&server))).len(), 16);
}

#[test]
fn a_role_that_may_only_read_reads() {
    let (server, folder) = (server(), tempdir().unwrap());
    run(&folder.path().join("one"), 1, "cpu");
    on("a", &place(&server)).scan(&[folder.path().to_owned()]).unwrap();
    let grants = [
        "CREATE ROLE reader LOGIN",
        "GRANT USAGE ON SCHEMA virtbench_history TO reader",
        "GRANT SELECT ON ALL TABLES IN SCHEMA virtbench_history TO reader",
    ];
    server.query(&grants).unwrap();
    let Connect { address, password } = server.connect();
    let reader = Connect { address: Address { user: "reader".into(), ..address }, password };
    let reading = Catalogue::open_as(Place::Server(Box::new(reader)), "b".into()).unwrap();
    assert!(reading.is_read_only());
    assert_eq!(folders(&reading).len(), 1);
    let to_read = Catalogue::open_to_read(place(&server)).unwrap().unwrap();
    assert!(to_read.is_read_only());
}

#[test]
fn tables_of_an_earlier_version_are_made_again_and_those_of_a_later_one_refused() {
    let (server, folder) = (server(), tempdir().unwrap());
    run(&folder.path().join("one"), 1, "cpu");
    let place = place(&server);
    on("a", &place).scan(&[folder.path().to_owned()]).unwrap();
    let set =
        |format: i32| server.query(&[&format!("UPDATE virtbench_history.version SET format = {format}")]);
    set(FORMAT - 1).unwrap();
    let mut again = on("a", &place);
    assert!(folders(&again).is_empty());
    assert_eq!(again.refresh().unwrap().read, 1, "the folders to look through are known, and are the truth");
    set(FORMAT + 1).unwrap();
    let error = Catalogue::open_as(place, "a".into()).err().unwrap();
    assert!(matches!(error, CatalogueError::Later(_)), "{error}");
}

/// Names and columns of the tables, in the order in which they stand.
fn columns_of_sqlite(path: &Path) -> Vec<String> {
    let words = "SELECT m.name || '.' || p.name FROM sqlite_schema m, pragma_table_info(m.name) p WHERE m.type = 'table' ORDER BY m.name, p.cid";
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(words).unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap()
}

#[test]
fn both_databases_have_the_same_tables() {
    let (server, folder) = (server(), tempdir().unwrap());
    let path = folder.path().join("history.sqlite");
    drop(Catalogue::open(&path).unwrap());
    drop(on("a", &place(&server)));
    let words = "SELECT table_name || '.' || column_name FROM information_schema.columns \
                 WHERE table_schema = 'virtbench_history' ORDER BY table_name COLLATE \"C\", ordinal_position";
    let columns = server.query(&[words]).unwrap();
    let columns: Vec<String> = columns.into_iter().map(|mut row| row.remove(0)).collect();
    assert_eq!(columns, columns_of_sqlite(&path));
    assert!(columns.len() > 15, "{columns:?}");
}

#[test]
fn what_is_no_catalogue_is_refused_with_what_to_write() {
    for (text, word) in [
        ("postgresql://u:secret@db/t", "PGPASSWORD"),
        ("mariadb://u@db/t", "PostgreSQL"),
        ("postgresql://db", "name"),
    ] {
        let error = Place::parse(Path::new(text), None).unwrap_err().to_string();
        assert!(error.contains("--catalogue") && error.contains(word), "{error}");
    }
    assert!(matches!(Place::parse(Path::new("a/b.sqlite"), None), Ok(Place::File(_))));
    let nowhere = Place::parse(Path::new("postgresql://u@127.0.0.1:1/t"), None).unwrap();
    let error = Catalogue::open(nowhere).err().unwrap().to_string();
    assert!(error.contains("127.0.0.1:1"), "{error}");
}

//! The catalogue that a team shares, in a PostgreSQL of this test's own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use tempfile::tempdir;
use virtbench_oltp::{Address, Connect, LocalServer};
use virtbench_record::DatabaseKind;

use super::tests::{FORMAT_3, quietly, run};
use super::*;
use crate::store::{FIRST_KEPT, FORMAT};

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
    let scanned = a.scan(std::slice::from_ref(&root), &mut quietly).unwrap();
    assert_eq!((scanned.read, scanned.unreadable.len()), (2, 1));
    assert_eq!(
        b.scan(std::slice::from_ref(&root), &mut quietly).unwrap().read,
        2,
        "a folder is one of its machine"
    );
    let one = root.join("one").display().to_string();
    assert_eq!(
        folders(&b).iter().filter(|folder| **folder == one || **folder == format!("a:{one}")).count(),
        2
    );
    let again = a.refresh(&mut quietly).unwrap();
    assert_eq!((again.read, again.unchanged, again.unreadable.len(), again.gone), (0, 2, 1, 0));

    fs::remove_dir_all(root.join("two")).unwrap();
    assert_eq!(a.refresh(&mut quietly).unwrap().gone, 1);
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
            scope.spawn(move || on(["a", "b"][writer % 2], &place).scan(roots, &mut quietly).unwrap());
        }
    });
    assert_eq!(folders(&on("a", &place(&server))).len(), 16);
}

#[test]
fn writers_of_one_machine_do_not_wait_for_each_other_for_ever() {
    let (server, folder) = (server(), tempdir().unwrap());
    let roots = ["x", "y"].map(|name| folder.path().join(name));
    for (root, number) in roots.iter().flat_map(|root| (0..60).map(move |number| (root, number))) {
        run(&root.join(number.to_string()), number, "cpu");
    }
    let [there, back] = [[&roots[0], &roots[1]], [&roots[1], &roots[0]]];
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let (place, order) = (place(&server), if writer % 2 == 0 { there } else { back });
            scope.spawn(move || {
                let order = order.map(Clone::clone);
                on("a", &place).rebuild(&order, &mut quietly).unwrap();
            });
        }
    });
    assert_eq!(folders(&on("a", &place(&server))).len(), 120);
}

/// The same database for a role that may do no more than this.
fn as_role(server: &LocalServer, role: &str, grants: &[&str]) -> Place {
    server.query(&[&format!("CREATE ROLE {role} LOGIN")]).unwrap();
    for grant in grants {
        server.query(&[&format!("GRANT {grant} virtbench_history TO {role}")]).unwrap();
    }
    let Connect { address, password } = server.connect();
    Place::Server(Box::new(Connect { address: Address { user: role.into(), ..address }, password }))
}

const READ: [&str; 2] = ["USAGE ON SCHEMA", "SELECT ON ALL TABLES IN SCHEMA"];
const WRITE: [&str; 2] = ["USAGE ON SCHEMA", "SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA"];

#[test]
fn a_role_that_may_only_read_reads() {
    let (server, folder) = (server(), tempdir().unwrap());
    run(&folder.path().join("one"), 1, "cpu");
    let opened = |place: &Place| Catalogue::open_as(place.clone(), "b".into());
    let early = as_role(&server, "early", &[]);
    let error = opened(&early).err().unwrap();
    let words = error.to_string();
    assert!(
        matches!(error, CatalogueError::MayNot { .. }) && words.contains("GRANT SELECT ON ALL TABLES"),
        "{words}"
    );
    on("a", &place(&server)).scan(&[folder.path().to_owned()], &mut quietly).unwrap();
    let reading = opened(&as_role(&server, "reader", &READ)).unwrap();
    assert!(reading.is_read_only());
    assert_eq!(folders(&reading).len(), 1);
    let mut writing = opened(&as_role(&server, "writer", &WRITE)).unwrap();
    assert!(!writing.is_read_only());
    assert_eq!(writing.scan(&[folder.path().to_owned()], &mut quietly).unwrap().read, 1);
    let to_read = Catalogue::open_to_read(place(&server)).unwrap().unwrap();
    assert!(to_read.is_read_only());
}

#[test]
fn tables_of_an_earlier_version_are_migrated_with_all_machines_runs_and_those_of_a_later_one_refused() {
    let (server, folder) = (server(), tempdir().unwrap());
    run(&folder.path().join("one"), 1, "cpu");
    let place = place(&server);
    server.query(&["CREATE SCHEMA virtbench_history"]).unwrap();
    let tables = FORMAT_3.replace("CREATE TABLE ", "CREATE TABLE virtbench_history.");
    let tables = tables.replace("INTO ", "INTO virtbench_history.");
    let statements: Vec<&str> = tables.split(';').filter(|statement| !statement.trim().is_empty()).collect();
    server.query(&statements).unwrap();
    // Who may not change the tables reads them as they are, or is told.
    let reading = Catalogue::open_as(as_role(&server, "reader", &READ), "b".into()).unwrap();
    assert!(reading.is_read_only() && folders(&reading) == ["a:/elsewhere"], "{:?}", folders(&reading));
    let error = Catalogue::open_as(as_role(&server, "writer", &WRITE), "b".into()).err().unwrap();
    assert!(matches!(error, CatalogueError::MayNot { .. }), "{error}");

    let mut migrated = on("b", &place);
    assert_eq!(folders(&migrated), ["a:/elsewhere"], "another machine's runs are kept");
    assert_eq!(migrated.scan(&[folder.path().to_owned()], &mut quietly).unwrap().read, 1);
    assert_eq!(migrated.refresh(&mut quietly).unwrap().unchanged, 1);
    assert_eq!(folders(&reading).len(), 2, "who was connected reads on");

    let set =
        |format: i32| server.query(&[&format!("UPDATE virtbench_history.version SET format = {format}")]);
    set(FORMAT + 1).unwrap();
    for error in [Catalogue::open(place.clone()).err(), Catalogue::open_to_read(place.clone()).err()] {
        let error = error.unwrap();
        assert!(matches!(error, CatalogueError::Later { .. }), "{error}");
    }
    set(FIRST_KEPT - 1).unwrap();
    let mut anew = on("b", &place);
    assert!(folders(&anew).is_empty());
    assert_eq!(anew.refresh(&mut quietly).unwrap().read, 1, "the folders to look through are known");
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
    let migrated = folder.path().join("migrated.sqlite");
    let old = "PRAGMA application_id = 1986160739; PRAGMA user_version = 3;";
    Connection::open(&migrated).unwrap().execute_batch(&format!("{FORMAT_3}{old}")).unwrap();
    drop(Catalogue::open(&migrated).unwrap());
    assert_eq!(columns, columns_of_sqlite(&migrated), "the way there makes no difference");
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

//! The tables in a file of SQLite, for one user.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, params};

use crate::error::CatalogueError;
use crate::store::{
    Change, FIRST_KEPT, FORMAT, KNOWN, Known, NO_TABLES, PUT_ROOT, PUT_RUN, PUT_UNREADABLE, ROOTS, ROWS, Row,
    Store, TABLES, VERSION, is_readable, steps_from,
};

/// Tells virtbench's catalogues from other SQLite files.
const APPLICATION: i32 = 0x7662_6863;
/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(10);

/// Whose file it is.
enum Whose {
    /// A catalogue of this format, by now.
    Ours,
    /// A later version's.
    Later,
    /// Another program's.
    Foreign,
}

/// An open file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    path: PathBuf,
    connection: Connection,
}

impl Sqlite {
    /// Opens the file, or makes it. Tables of an earlier format are changed in place; of the earliest ones only the folders to look
    /// through are kept.
    pub(crate) fn open(path: &Path, machine: &str) -> Result<Self, CatalogueError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .map_err(|source| CatalogueError::File { path: folder.to_owned(), source })?;
        }
        let open = || -> rusqlite::Result<(Connection, Whose)> {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY)?;
            let whose = prepare(&connection, machine)?;
            Ok((connection, whose))
        };
        match open() {
            Ok((connection, Whose::Ours)) => Ok(Self { path: path.to_owned(), connection }),
            Ok((_, Whose::Later)) => Err(later(path)),
            Ok((_, Whose::Foreign)) => Err(CatalogueError::Foreign(path.to_owned())),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
                Err(CatalogueError::Foreign(path.to_owned()))
            }
            Err(source) => Err(CatalogueError::Sqlite { path: path.to_owned(), source }),
        }
    }

    /// Opens the file to read it; nothing where there is none, or one that cannot be read as it is.
    pub(crate) fn open_to_read(path: &Path) -> Result<Option<Self>, CatalogueError> {
        let open = || -> rusqlite::Result<(Connection, (i32, i32))> {
            let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            connection.busy_timeout(BUSY)?;
            let identity = identity(&connection)?;
            Ok((connection, identity))
        };
        if !path.is_file() {
            return Ok(None);
        }
        match open() {
            Ok((_, (APPLICATION, format))) if format > FORMAT => Err(later(path)),
            Ok((connection, (APPLICATION, format))) if is_readable(format) => {
                Ok(Some(Self { path: path.to_owned(), connection }))
            }
            Ok(_) => Ok(None),
            Err(source) => Err(CatalogueError::Sqlite { path: path.to_owned(), source }),
        }
    }

    fn refused(&self, source: rusqlite::Error) -> CatalogueError {
        CatalogueError::Sqlite { path: self.path.clone(), source }
    }

    fn changed(&mut self, machine: &str, changes: &[Change]) -> rusqlite::Result<()> {
        let transaction = self.connection.transaction()?;
        for change in changes {
            match change {
                Change::Root(path) => {
                    transaction.execute(PUT_ROOT, [machine, path])?;
                }
                Change::Run(row) => {
                    forget(&transaction, machine, &row.folder)?;
                    transaction.execute(
                        PUT_RUN,
                        params![
                            machine,
                            row.folder,
                            row.state,
                            row.started_unix_s,
                            row.study,
                            row.parts,
                            row.identity,
                            row.load,
                            row.host,
                            row.versions,
                            row.tags,
                            row.measures,
                            VERSION
                        ],
                    )?;
                }
                Change::Unreadable { folder, state, why } => {
                    forget(&transaction, machine, folder)?;
                    transaction.execute(PUT_UNREADABLE, [machine, folder, state, why, VERSION])?;
                }
                Change::Gone(folder) => forget(&transaction, machine, folder)?,
            }
        }
        transaction.commit()
    }

    fn all_rows(&self) -> rusqlite::Result<Vec<Row>> {
        let mut statement = self.connection.prepare(ROWS)?;
        let rows = statement.query_map([], |row| {
            Ok(Row {
                machine: row.get(0)?,
                folder: row.get(1)?,
                state: row.get(2)?,
                started_unix_s: row.get(3)?,
                study: row.get(4)?,
                parts: row.get(5)?,
                identity: row.get(6)?,
                load: row.get(7)?,
                host: row.get(8)?,
                versions: row.get(9)?,
                tags: row.get(10)?,
                measures: row.get(11)?,
            })
        })?;
        rows.collect()
    }

    fn all_known(&self, machine: &str) -> rusqlite::Result<Vec<Known>> {
        let mut statement = self.connection.prepare(KNOWN)?;
        let known = statement.query_map([machine], |row| {
            let why: String = row.get(2)?;
            Ok(Known {
                folder: row.get(0)?,
                state: row.get(1)?,
                why: Some(why).filter(|why| !why.is_empty()),
                read_by: row.get(3)?,
            })
        })?;
        known.collect()
    }
}

impl Store for Sqlite {
    fn roots(&mut self, machine: &str) -> Result<Vec<String>, CatalogueError> {
        texts(&self.connection, ROOTS, &[machine]).map_err(|source| self.refused(source))
    }

    fn known(&mut self, machine: &str) -> Result<Vec<Known>, CatalogueError> {
        self.all_known(machine).map_err(|source| self.refused(source))
    }

    fn change(&mut self, machine: &str, changes: &[Change]) -> Result<(), CatalogueError> {
        self.changed(machine, changes).map_err(|source| self.refused(source))
    }

    fn rows(&self) -> Result<Vec<Row>, CatalogueError> {
        self.all_rows().map_err(|source| self.refused(source))
    }

    fn is_read_only(&self) -> bool {
        self.connection.is_readonly("main").unwrap_or(false)
    }
}

fn forget(connection: &Connection, machine: &str, folder: &str) -> rusqlite::Result<()> {
    for table in ["runs", "unreadable"] {
        connection
            .execute(&format!("DELETE FROM {table} WHERE machine = $1 AND folder = $2"), [machine, folder])?;
    }
    Ok(())
}

/// A file that this version cannot use.
fn later(path: &Path) -> CatalogueError {
    CatalogueError::Later { place: path.display().to_string(), instead: "another --catalogue" }
}

/// Makes the tables where they are missing, and those of this format of earlier ones.
fn prepare(connection: &Connection, machine: &str) -> rusqlite::Result<Whose> {
    let (application, format) = identity(connection)?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION && tables > 0 {
        return Ok(Whose::Foreign);
    }
    if application == APPLICATION && format >= FORMAT {
        return Ok(if format == FORMAT { Whose::Ours } else { Whose::Later });
    }
    // An exclusive transaction: of two that find it so, the second one looks again.
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    let made = make_tables(connection, machine);
    connection.execute_batch(if made.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    made.map(|()| Whose::Ours)
}

/// Whose file it is, and of which format.
fn identity(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    Ok((pragma("application_id")?, pragma("user_version")?))
}

fn make_tables(connection: &Connection, machine: &str) -> rusqlite::Result<()> {
    let format = connection.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))?;
    if format == FORMAT {
        return Ok(());
    }
    if let Some(steps) = steps_from(format) {
        steps.iter().try_for_each(|step| connection.execute_batch(step))?;
        connection.execute("UPDATE version SET format = $1", [FORMAT])?;
        return connection.pragma_update(None, "user_version", FORMAT);
    }
    let is_there =
        connection.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'roots'", [], |row| row.get(0));
    // Before machines were told apart.
    let is_early = (1..FIRST_KEPT).contains(&format) && is_there?;
    let roots = if is_early { texts(connection, "SELECT path FROM roots", &[])? } else { Vec::new() };
    connection.execute_batch(NO_TABLES)?;
    connection.execute_batch(TABLES)?;
    connection.execute("INSERT INTO version (format) VALUES ($1)", [FORMAT])?;
    for root in roots {
        connection.execute(PUT_ROOT, [machine, &root])?;
    }
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", FORMAT)
}

/// The first column of what a query finds.
fn texts(connection: &Connection, query: &str, words: &[&str]) -> rusqlite::Result<Vec<String>> {
    connection.prepare(query)?.query_map(rusqlite::params_from_iter(words), |row| row.get(0))?.collect()
}

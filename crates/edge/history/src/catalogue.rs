//! The SQLite file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, OptionalExtension, params};
use virtbench_model::history::HistoryRun;

use crate::error::CatalogueError;
use crate::filter::Filter;
use crate::found::{read_run, run_folders, state};

/// Tells virtbench's catalogues from other SQLite files.
const APPLICATION: i32 = 0x7662_6863;
/// Of the tables and of what is put into them. Another one's are filled again.
const FORMAT: i32 = 2;
/// How long another process that writes is waited for.
const BUSY: Duration = Duration::from_secs(10);
/// Runs, each as what was read of it; folders that were looked through.
const TABLES: &str = "
    CREATE TABLE roots (path TEXT PRIMARY KEY) WITHOUT ROWID;
    CREATE TABLE runs (
        folder TEXT PRIMARY KEY, state TEXT NOT NULL, started_unix_s INTEGER NOT NULL, study TEXT NOT NULL,
        parts TEXT NOT NULL, identity TEXT NOT NULL, load TEXT NOT NULL, host TEXT NOT NULL, versions TEXT NOT NULL,
        tags TEXT NOT NULL, measures TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TABLE unreadable (folder TEXT PRIMARY KEY, state TEXT NOT NULL, why TEXT NOT NULL) WITHOUT ROWID;";

/// What a scan found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Runs that were read, for the first time or because they changed.
    pub read: usize,
    /// Runs that have not changed.
    pub unchanged: usize,
    /// Runs whose folders are gone.
    pub gone: usize,
    /// Run folders that cannot be read, and why.
    pub unreadable: Vec<(PathBuf, String)>,
}

/// A catalogue of run folders.
#[derive(Debug)]
pub struct Catalogue {
    path: PathBuf,
    connection: Connection,
}

impl Catalogue {
    /// Opens the catalogue at `path`, or makes an empty one. That of another version is emptied, except for the folders that
    /// are to be looked through.
    ///
    /// # Errors
    /// It is another program's file, or cannot be opened.
    pub fn open(path: &Path) -> Result<Self, CatalogueError> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .map_err(|source| CatalogueError::File { path: folder.to_owned(), source })?;
        }
        let open = || -> rusqlite::Result<(Connection, bool)> {
            let connection = Connection::open(path)?;
            connection.busy_timeout(BUSY)?;
            let is_ours = prepare(&connection)?;
            Ok((connection, is_ours))
        };
        match open() {
            Ok((connection, true)) => Ok(Self { path: path.to_owned(), connection }),
            Ok((_, false)) => Err(CatalogueError::Foreign(path.to_owned())),
            Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::NotADatabase) => {
                Err(CatalogueError::Foreign(path.to_owned()))
            }
            Err(source) => Err(CatalogueError::Sqlite { path: path.to_owned(), source }),
        }
    }

    /// Opens the catalogue at `path` to read what it holds, and changes nothing; nothing where there is none, or one that another version
    /// filled.
    ///
    /// # Errors
    /// SQLite refuses.
    pub fn open_to_read(path: &Path) -> Result<Option<Self>, CatalogueError> {
        let open = || -> rusqlite::Result<Option<Connection>> {
            let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
            connection.busy_timeout(BUSY)?;
            Ok((identity(&connection)? == (APPLICATION, FORMAT)).then_some(connection))
        };
        if !path.is_file() {
            return Ok(None);
        }
        let opened = open().map_err(|source| CatalogueError::Sqlite { path: path.to_owned(), source });
        Ok(opened?.map(|connection| Self { path: path.to_owned(), connection }))
    }

    /// Looks through folders, and remembers them for the next [`refresh`](Self::refresh).
    ///
    /// # Errors
    /// A folder is not there, or SQLite refuses.
    pub fn scan(&mut self, roots: &[PathBuf]) -> Result<Scanned, CatalogueError> {
        let mut folders = Vec::new();
        for root in roots {
            fs::read_dir(root).map_err(|source| CatalogueError::File { path: root.clone(), source })?;
            folders.extend(run_folders(root));
        }
        let scanned = self.take_in(roots, &folders);
        scanned.map_err(|source| self.refused(source))
    }

    /// Looks through all folders that were ever named, and forgets runs that are gone.
    ///
    /// # Errors
    /// SQLite refuses.
    pub fn refresh(&mut self) -> Result<Scanned, CatalogueError> {
        let roots =
            texts(&self.connection, "SELECT path FROM roots").map_err(|source| self.refused(source))?;
        let roots: Vec<PathBuf> = roots.into_iter().map(PathBuf::from).collect();
        let mut folders: Vec<PathBuf> = roots.iter().flat_map(|root| run_folders(root)).collect();
        folders.sort();
        folders.dedup();
        let scanned = self.take_in(&roots, &folders).and_then(|mut scanned| {
            scanned.gone = self.forget_gone()?;
            Ok(scanned)
        });
        scanned.map_err(|source| self.refused(source))
    }

    /// The runs that a filter takes, in the order of time.
    ///
    /// # Errors
    /// SQLite refuses, or the file is damaged.
    pub fn runs(&self, filter: &Filter) -> Result<Vec<HistoryRun>, CatalogueError> {
        let runs = self.all_runs().map_err(|source| self.refused(source))?;
        Ok(runs.into_iter().filter(|run| filter.takes(run)).collect())
    }

    fn all_runs(&self) -> rusqlite::Result<Vec<HistoryRun>> {
        let mut statement = self.connection.prepare(
            "SELECT folder, started_unix_s, study, parts, identity, load, host, versions, tags, measures FROM runs
             ORDER BY started_unix_s, folder",
        )?;
        let runs = statement.query_map([], |row| {
            Ok(HistoryRun {
                folder: row.get(0)?,
                started_unix_s: row.get(1)?,
                study: row.get(2)?,
                parts: from_json(3, &row.get::<_, String>(3)?)?,
                identity: row.get(4)?,
                load: from_json(5, &row.get::<_, String>(5)?)?,
                host: row.get(6)?,
                versions: from_json(7, &row.get::<_, String>(7)?)?,
                tags: from_json(8, &row.get::<_, String>(8)?)?,
                measures: from_json(9, &row.get::<_, String>(9)?)?,
            })
        })?;
        runs.collect()
    }

    fn refused(&self, source: rusqlite::Error) -> CatalogueError {
        CatalogueError::Sqlite { path: self.path.clone(), source }
    }

    fn take_in(&mut self, roots: &[PathBuf], folders: &[PathBuf]) -> rusqlite::Result<Scanned> {
        let transaction = self.connection.transaction()?;
        for root in roots {
            transaction
                .execute("INSERT OR IGNORE INTO roots (path) VALUES (?1)", [root.display().to_string()])?;
        }
        let mut scanned = Scanned::default();
        for folder in folders {
            let (name, state) = (folder.display().to_string(), state(folder));
            let known: Option<(String, Option<String>)> = transaction
                .query_row(
                    "SELECT state, NULL FROM runs WHERE folder = ?1
                     UNION ALL SELECT state, why FROM unreadable WHERE folder = ?1",
                    [&name],
                    |row| Ok((row.get(0)?, row.get(1)?)),
                )
                .optional()?;
            match known {
                Some((before, None)) if before == state => scanned.unchanged += 1,
                Some((before, Some(why))) if before == state => {
                    scanned.unreadable.push((folder.clone(), why))
                }
                _ => take_in_one(&transaction, folder, &state, &mut scanned)?,
            }
        }
        transaction.commit()?;
        Ok(scanned)
    }

    fn forget_gone(&mut self) -> rusqlite::Result<usize> {
        let transaction = self.connection.transaction()?;
        let mut gone = 0;
        for table in ["runs", "unreadable"] {
            let folders = texts(&transaction, &format!("SELECT folder FROM {table}"))?;
            for folder in folders.iter().filter(|folder| !Path::new(folder).join("run.json").is_file()) {
                transaction.execute(&format!("DELETE FROM {table} WHERE folder = ?1"), [folder])?;
                gone += usize::from(table == "runs");
            }
        }
        transaction.commit()?;
        Ok(gone)
    }
}

/// Makes the tables where they are missing or of another version; answers whether the file is virtbench's.
fn prepare(connection: &Connection) -> rusqlite::Result<bool> {
    let (application, format) = identity(connection)?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if application != APPLICATION && tables > 0 {
        return Ok(false);
    }
    if application == APPLICATION && format == FORMAT {
        return Ok(true);
    }
    // An exclusive transaction: of two that find it empty, the second one looks again.
    connection.execute_batch("BEGIN EXCLUSIVE")?;
    let made = make_tables(connection);
    connection.execute_batch(if made.is_ok() { "COMMIT" } else { "ROLLBACK" })?;
    made.map(|()| true)
}

/// Whose file it is, and of which format.
fn identity(connection: &Connection) -> rusqlite::Result<(i32, i32)> {
    let pragma = |name: &str| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    Ok((pragma("application_id")?, pragma("user_version")?))
}

fn make_tables(connection: &Connection) -> rusqlite::Result<()> {
    if connection.pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))? == FORMAT {
        return Ok(());
    }
    let is_there =
        connection.query_row("SELECT count(*) FROM sqlite_schema WHERE name = 'roots'", [], |row| row.get(0));
    let roots = if is_there? { texts(connection, "SELECT path FROM roots")? } else { Vec::new() };
    connection.execute_batch(
        "DROP TABLE IF EXISTS roots; DROP TABLE IF EXISTS runs; DROP TABLE IF EXISTS unreadable;",
    )?;
    connection.execute_batch(TABLES)?;
    for root in roots {
        connection.execute("INSERT INTO roots (path) VALUES (?1)", [root])?;
    }
    connection.pragma_update(None, "application_id", APPLICATION)?;
    connection.pragma_update(None, "user_version", FORMAT)
}

/// The first column of what a query finds.
fn texts(connection: &Connection, query: &str) -> rusqlite::Result<Vec<String>> {
    connection.prepare(query)?.query_map([], |row| row.get(0))?.collect()
}

fn take_in_one(
    connection: &Connection,
    folder: &Path,
    state: &str,
    scanned: &mut Scanned,
) -> rusqlite::Result<()> {
    let name = folder.display().to_string();
    connection.execute("DELETE FROM runs WHERE folder = ?1", [&name])?;
    connection.execute("DELETE FROM unreadable WHERE folder = ?1", [&name])?;
    match read_run(folder) {
        Ok(run) => {
            connection.execute(
                "INSERT INTO runs (folder, state, started_unix_s, study, parts, identity, load, host, versions, tags, measures)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
                params![
                    name,
                    state,
                    run.started_unix_s,
                    run.study,
                    to_json(&run.parts)?,
                    run.identity,
                    to_json(&run.load)?,
                    run.host,
                    to_json(&run.versions)?,
                    to_json(&run.tags)?,
                    to_json(&run.measures)?
                ],
            )?;
            scanned.read += 1;
        }
        Err(error) => {
            let why = error.to_string();
            connection.execute(
                "INSERT INTO unreadable (folder, state, why) VALUES (?1, ?2, ?3)",
                [&name, state, &why],
            )?;
            scanned.unreadable.push((folder.to_owned(), why));
        }
    }
    Ok(())
}

fn to_json<T: serde::Serialize>(value: &T) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(error.into()))
}

fn from_json<T: serde::de::DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, rusqlite::types::Type::Text, error.into())
    })
}

#[cfg(test)]
#[path = "catalogue_tests.rs"]
mod tests;

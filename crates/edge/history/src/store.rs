//! What a catalogue is kept in: the same tables in SQLite and in PostgreSQL.

use std::fmt::Debug;

use crate::error::CatalogueError;

/// Of the tables and of what is put into them. Those of an earlier one are made again, and filled from the run folders.
pub(crate) const FORMAT: i32 = 3;

/// Runs, each as what was read of it; folders that were looked through. A folder is one of a machine: two may have the same name.
/// Both databases know these words.
pub(crate) const TABLES: &str = "
    CREATE TABLE version (format INTEGER NOT NULL);
    CREATE TABLE roots (machine TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (machine, path));
    CREATE TABLE runs (
        machine TEXT NOT NULL, folder TEXT NOT NULL, state TEXT NOT NULL, started_unix_s BIGINT NOT NULL, study TEXT NOT NULL,
        parts TEXT NOT NULL, identity TEXT NOT NULL, load TEXT NOT NULL, host TEXT NOT NULL, versions TEXT NOT NULL,
        tags TEXT NOT NULL, measures TEXT NOT NULL, PRIMARY KEY (machine, folder)
    );
    CREATE TABLE unreadable (
        machine TEXT NOT NULL, folder TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (machine, folder)
    );";

/// The tables of a format before this one, to remove.
pub(crate) const NO_TABLES: &str = "DROP TABLE IF EXISTS version; DROP TABLE IF EXISTS roots; DROP TABLE IF EXISTS runs; DROP TABLE IF EXISTS unreadable;";

pub(crate) const ROWS: &str = "SELECT machine, folder, state, started_unix_s, study, parts, identity, load, host, versions, tags, measures \
                               FROM runs ORDER BY started_unix_s, machine, folder";

pub(crate) const PUT_RUN: &str = "INSERT INTO runs (machine, folder, state, started_unix_s, study, parts, identity, load, host, versions, \
     tags, measures) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (machine, folder) DO UPDATE SET \
     state = excluded.state, started_unix_s = excluded.started_unix_s, study = excluded.study, parts = excluded.parts, \
     identity = excluded.identity, load = excluded.load, host = excluded.host, versions = excluded.versions, tags = excluded.tags, \
     measures = excluded.measures";

pub(crate) const PUT_UNREADABLE: &str = "INSERT INTO unreadable (machine, folder, state, why) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (machine, folder) DO UPDATE SET state = excluded.state, why = excluded.why";

pub(crate) const PUT_ROOT: &str = "INSERT INTO roots (machine, path) VALUES ($1, $2) ON CONFLICT DO NOTHING";

pub(crate) const KNOWN: &str = "SELECT folder, state, '' FROM runs WHERE machine = $1 \
     UNION ALL SELECT folder, state, why FROM unreadable WHERE machine = $1";

pub(crate) const ROOTS: &str = "SELECT path FROM roots WHERE machine = $1 ORDER BY path";

/// A row of runs; what has several parts is JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) machine: String,
    pub(crate) folder: String,
    pub(crate) state: String,
    pub(crate) started_unix_s: i64,
    pub(crate) study: String,
    pub(crate) parts: String,
    pub(crate) identity: String,
    pub(crate) load: String,
    pub(crate) host: String,
    pub(crate) versions: String,
    pub(crate) tags: String,
    pub(crate) measures: String,
}

/// What is known of a folder: its state when it was read, and why it could not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) folder: String,
    pub(crate) state: String,
    pub(crate) why: Option<String>,
}

/// One change of what the catalogue holds of a machine.
#[derive(Debug)]
pub(crate) enum Change {
    /// A folder is looked through from now on.
    Root(String),
    /// A run was read.
    Run(Box<Row>),
    /// A run folder cannot be read.
    Unreadable { folder: String, state: String, why: String },
    /// A run folder is gone.
    Gone(String),
}

/// A database that holds the tables.
pub(crate) trait Store: Debug {
    /// Folders of this machine that are looked through.
    fn roots(&mut self, machine: &str) -> Result<Vec<String>, CatalogueError>;
    /// Every folder of this machine.
    fn known(&mut self, machine: &str) -> Result<Vec<Known>, CatalogueError>;
    /// Makes all changes, or none.
    fn change(&mut self, machine: &str, changes: &[Change]) -> Result<(), CatalogueError>;
    /// Every run of every machine, in the order of time.
    fn rows(&self) -> Result<Vec<Row>, CatalogueError>;
    /// Whether changes are refused.
    fn is_read_only(&self) -> bool;
}

//! What a catalogue is kept in: the same tables in SQLite and in PostgreSQL.

use std::fmt::Debug;

use crate::error::CatalogueError;

/// Of the tables.
pub(crate) const FORMAT: i32 = 4;
/// The first format whose tables are changed in place. Those of earlier ones are emptied, and filled again from the run folders.
pub(crate) const FIRST_KEPT: i32 = 3;
/// What makes of the tables of each format from [`FIRST_KEPT`] on those of the next one. Both databases know these words.
const STEPS: [&str; 1] = ["ALTER TABLE runs ADD COLUMN read_by TEXT NOT NULL DEFAULT '';
    ALTER TABLE unreadable ADD COLUMN read_by TEXT NOT NULL DEFAULT '';"];
/// Who reads runs now: what another version read is read again.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The steps from the tables of a format to those of [`FORMAT`]; nothing where there is no way but to make them anew.
pub(crate) fn steps_from(format: i32) -> Option<&'static [&'static str]> {
    let first = usize::try_from(format.checked_sub(FIRST_KEPT)?).ok()?;
    STEPS.get(first..)
}

/// Whether the tables of a format can be read as they are: their columns are there in each later one.
pub(crate) fn is_readable(format: i32) -> bool {
    (FIRST_KEPT..=FORMAT).contains(&format)
}

/// Runs, each as what was read of it; folders that were looked through. A folder is one of a machine: two may have the same name.
/// Both databases know these words.
pub(crate) const TABLES: &str = "
    CREATE TABLE version (format INTEGER NOT NULL);
    CREATE TABLE roots (machine TEXT NOT NULL, path TEXT NOT NULL, PRIMARY KEY (machine, path));
    CREATE TABLE runs (
        machine TEXT NOT NULL, folder TEXT NOT NULL, state TEXT NOT NULL, started_unix_s BIGINT NOT NULL, study TEXT NOT NULL,
        parts TEXT NOT NULL, identity TEXT NOT NULL, load TEXT NOT NULL, host TEXT NOT NULL, versions TEXT NOT NULL,
        tags TEXT NOT NULL, measures TEXT NOT NULL, read_by TEXT NOT NULL DEFAULT '', PRIMARY KEY (machine, folder)
    );
    CREATE TABLE unreadable (
        machine TEXT NOT NULL, folder TEXT NOT NULL, state TEXT NOT NULL, why TEXT NOT NULL, read_by TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (machine, folder)
    );";

/// The tables of a format before [`FIRST_KEPT`], to remove.
pub(crate) const NO_TABLES: &str = "DROP TABLE IF EXISTS version; DROP TABLE IF EXISTS roots; DROP TABLE IF EXISTS runs; DROP TABLE IF EXISTS unreadable;";

pub(crate) const ROWS: &str = "SELECT machine, folder, state, started_unix_s, study, parts, identity, load, host, versions, tags, measures \
                               FROM runs ORDER BY started_unix_s, machine, folder";

pub(crate) const PUT_RUN: &str = "INSERT INTO runs (machine, folder, state, started_unix_s, study, parts, identity, load, host, versions, \
     tags, measures, read_by) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) ON CONFLICT (machine, folder) DO UPDATE SET \
     state = excluded.state, started_unix_s = excluded.started_unix_s, study = excluded.study, parts = excluded.parts, \
     identity = excluded.identity, load = excluded.load, host = excluded.host, versions = excluded.versions, tags = excluded.tags, \
     measures = excluded.measures, read_by = excluded.read_by";

pub(crate) const PUT_UNREADABLE: &str = "INSERT INTO unreadable (machine, folder, state, why, read_by) \
     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (machine, folder) DO UPDATE SET state = excluded.state, why = excluded.why, \
     read_by = excluded.read_by";

pub(crate) const PUT_ROOT: &str = "INSERT INTO roots (machine, path) VALUES ($1, $2) ON CONFLICT DO NOTHING";

pub(crate) const KNOWN: &str = "SELECT folder, state, '', read_by FROM runs WHERE machine = $1 \
     UNION ALL SELECT folder, state, why, read_by FROM unreadable WHERE machine = $1";

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

/// What is known of a folder: its state when it was read, why it could not be, and the version that read it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) folder: String,
    pub(crate) state: String,
    pub(crate) why: Option<String>,
    pub(crate) read_by: String,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_leads_from_each_format_that_is_kept_to_the_next() {
        assert_eq!(steps_from(FORMAT), Some(&[][..]));
        for format in FIRST_KEPT..FORMAT {
            let steps = steps_from(format).unwrap();
            assert_eq!(i32::try_from(steps.len()), Ok(FORMAT - format));
            assert!(is_readable(format));
        }
        assert!([0, FIRST_KEPT - 1, FORMAT + 1].iter().all(|format| steps_from(*format).is_none()));
        assert!(!is_readable(FORMAT + 1) && !is_readable(FIRST_KEPT - 1));
    }
}

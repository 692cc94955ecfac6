//! What can be wrong with a catalogue.

use std::io;
use std::path::PathBuf;

use thiserror::Error;
use virtbench_oltp::{Address, OltpError};
use virtbench_runs::FolderError;

/// A catalogue or a tag that cannot be used.
#[derive(Debug, Error)]
pub enum CatalogueError {
    /// It is another program's file.
    #[error("{path} is no catalogue of virtbench: choose another --catalogue", path = .0.display())]
    Foreign(PathBuf),
    /// SQLite refused.
    #[error("{path}: {source}; a damaged catalogue can be removed: `virtbench history list FOLDER` fills it again",
        path = path.display())]
    Sqlite {
        /// The catalogue.
        path: PathBuf,
        /// What SQLite said.
        source: rusqlite::Error,
    },
    /// It is no address of a catalogue.
    #[error("--catalogue: {0}")]
    Address(String),
    /// No connection came about.
    #[error("--catalogue: {0}")]
    Connect(#[from] OltpError),
    /// PostgreSQL refused.
    #[error(
        "{address}: {}; the catalogue can be dropped with its schema: `virtbench history list FOLDER` fills it again",
        said(source)
    )]
    PostgreSql {
        /// The catalogue.
        address: Box<Address>,
        /// What PostgreSQL said.
        source: tokio_postgres::Error,
    },
    /// A later version of virtbench made the tables.
    #[error("{place} holds a catalogue of a later version: use that version of virtbench, or {instead}")]
    Later {
        /// The file or the database.
        place: String,
        /// What else can be used.
        instead: &'static str,
    },
    /// The tables are not there or of an earlier version, and this role may not make them so.
    #[error(
        "{address}: {said}: as this user virtbench cannot make or change the catalogue's tables. Run `virtbench history list` once as one \
         that may; GRANT USAGE ON SCHEMA {schema} and GRANT SELECT ON ALL TABLES IN SCHEMA {schema} then let others read"
    )]
    MayNot {
        /// The catalogue.
        address: Box<Address>,
        /// What PostgreSQL said.
        said: String,
        /// Where the tables are, or would be.
        schema: String,
    },
    /// A row is damaged.
    #[error("the catalogue is damaged: {0}; remove it, and `virtbench history list FOLDER` fills it again")]
    Damaged(#[from] serde_json::Error),
    /// A file cannot be read or written.
    #[error("{path}: {source}", path = path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A run folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A word that is no tag.
    #[error("{0:?} is no tag: up to 60 letters, digits, dots, hyphens, slashes and underscores")]
    Tag(String),
    /// A run has too many.
    #[error("{path} would have more than {limit} tags", path = path.display(), limit = crate::MAX_TAGS)]
    TooManyTags {
        /// The run folder.
        path: PathBuf,
    },
}

/// What the server said, which the client keeps below its own words.
pub(crate) fn said(error: &tokio_postgres::Error) -> String {
    error.as_db_error().map_or_else(|| error.to_string(), |said| said.message().to_owned())
}

//! What can be wrong with a catalogue.

use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;
use virtbench_oltp::{Address, Connect, OltpError};
use virtbench_record::DatabaseKind;
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

/// The most tags of a run.
pub const MAX_TAGS: usize = 100;

/// Where a catalogue is.
#[derive(Debug, Clone)]
pub enum Place {
    /// A file of SQLite.
    File(PathBuf),
    /// A database of PostgreSQL.
    Server(Box<Connect>),
}

impl Place {
    /// Reads a path, or an address such as `postgresql://user@host/database`. `password` is for the login.
    ///
    /// # Errors
    /// It is an address that cannot be used.
    pub fn parse(text: &Path, password: Option<String>) -> Result<Self, CatalogueError> {
        let address = text.to_str().filter(|text| text.contains("://"));
        let Some(address) = address else { return Ok(Self::File(text.to_owned())) };
        let address = Address::parse(address).map_err(CatalogueError::Address)?;
        if address.kind != DatabaseKind::PostgreSql {
            return Err(CatalogueError::Address("a catalogue is a file, or a database of PostgreSQL".into()));
        }
        Ok(Self::Server(Box::new(Connect { address, password })))
    }
}

impl<T: AsRef<Path>> From<T> for Place {
    fn from(path: T) -> Self {
        Self::File(path.as_ref().to_owned())
    }
}

/// What a run must be to be shown. An empty filter means every run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Filter {
    /// It lies in one of these folders, if any are named. Absolute paths.
    pub folders: Vec<PathBuf>,
    /// It is of this study.
    pub study: Option<String>,
    /// Its host's description contains this, in whatever case.
    pub host: Option<String>,
    /// It has all these tags.
    pub tags: Vec<String>,
    /// It began at this time or later, in seconds since 1970.
    pub since_unix_s: u64,
}

impl Filter {
    /// Whether the filter selects a run.
    pub(crate) fn takes(&self, run: &virtbench_model::history::HistoryRun) -> bool {
        let inside = |folder: &PathBuf| std::path::Path::new(&run.folder).starts_with(folder);
        (self.folders.is_empty() || self.folders.iter().any(inside))
            && self.study.as_ref().is_none_or(|study| *study == run.study)
            && self.host.as_ref().is_none_or(|host| run.host.to_lowercase().contains(&host.to_lowercase()))
            && self.tags.iter().all(|tag| run.tags.contains(tag))
            && run.started_unix_s >= self.since_unix_s
    }
}

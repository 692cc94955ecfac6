//! Where a catalogue is: a file, or a database that a team shares.

use std::path::{Path, PathBuf};

use virtbench_oltp::{Address, Connect};
use virtbench_record::DatabaseKind;

use crate::error::CatalogueError;

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

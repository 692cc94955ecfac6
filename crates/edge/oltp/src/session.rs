//! A connection to either database: the seam between transactions and servers.

use virtbench_record::{DatabaseKind, OltpIsolation};

use crate::address::Connect;
use crate::call::Call;
use crate::fault::Fault;
use crate::mariadb::MariaDb;
use crate::postgresql::PostgreSql;
use crate::value::Row;

/// A connection.
pub enum Session {
    /// To PostgreSQL.
    PostgreSql(Box<PostgreSql>),
    /// To MariaDB.
    MariaDb(Box<MariaDb>),
}

impl Session {
    /// Connects and logs in; transactions have this isolation.
    ///
    /// # Errors
    /// Why not, within a time limit.
    pub async fn open(connect: &Connect, isolation: OltpIsolation) -> Result<Self, Fault> {
        Ok(match connect.address.kind {
            DatabaseKind::PostgreSql => {
                Self::PostgreSql(Box::new(PostgreSql::open(connect, isolation).await?))
            }
            DatabaseKind::MariaDb => Self::MariaDb(Box::new(MariaDb::open(connect, isolation).await?)),
        })
    }

    /// Runs statements in order and gives the rows of each. PostgreSQL gets them all at once and answers them one after the
    /// other; MariaDB gets each when the one before is answered.
    ///
    /// # Errors
    /// The first fault. The transaction is then to be rolled back.
    pub async fn run(&mut self, calls: &[Call<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
        match self {
            Self::PostgreSql(session) => session.run(calls).await,
            Self::MariaDb(session) => session.run(calls).await,
        }
    }

    /// Runs a statement without parameters that is not prepared.
    ///
    /// # Errors
    /// The server's fault.
    pub async fn query(&mut self, text: &str) -> Result<Vec<Row>, Fault> {
        match self {
            Self::PostgreSql(session) => session.query(text).await,
            Self::MariaDb(session) => session.query(text).await,
        }
    }

    /// Loads rows into a table: `next` gives them as text, nothing at the end.
    ///
    /// # Errors
    /// The server's fault.
    pub async fn load(
        &mut self,
        table: &str,
        next: impl FnMut() -> Option<Vec<u8>> + Send + 'static,
    ) -> Result<(), Fault> {
        match self {
            Self::PostgreSql(session) => session.load(table, next).await,
            Self::MariaDb(session) => session.load(table, next).await,
        }
    }
}

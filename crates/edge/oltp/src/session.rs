//! A connection to either database: the seam between transactions and servers.

use virtbench_record::DatabaseKind;

use crate::address::Connect;
use crate::call::Call;
use crate::fault::Fault;
use crate::manner::Manner;
use crate::mariadb::MariaDb;
use crate::postgresql::PostgreSql;
use crate::schema::Schema;
use crate::value::Row;

/// A connection, with the schema in which its statements find tables.
pub struct Session {
    server: Server,
    schema: Schema,
}

enum Server {
    PostgreSql(Box<PostgreSql>),
    MariaDb(Box<MariaDb>),
}

impl Session {
    /// Connects and logs in.
    ///
    /// # Errors
    /// Why not, within a time limit.
    pub async fn open(connect: &Connect, manner: Manner) -> Result<Self, Fault> {
        let Connect { address, .. } = connect;
        let server = match address.kind {
            DatabaseKind::PostgreSql => {
                Server::PostgreSql(Box::new(PostgreSql::open(connect, manner).await?))
            }
            DatabaseKind::MariaDb => Server::MariaDb(Box::new(MariaDb::open(connect, manner).await?)),
        };
        // Until it is told another one.
        Ok(Self { server, schema: Schema::new(address.kind, &address.database) })
    }

    /// Tells it where tables are.
    pub fn set_schema(&mut self, schema: &Schema) {
        self.schema = schema.clone();
    }

    /// Whether a list of statements takes as many exchanges as it has statements.
    pub fn answers_one_by_one(&self) -> bool {
        matches!(self.server, Server::MariaDb(_))
    }

    /// Runs statements in order and gives the rows of each. PostgreSQL gets them all at once and answers them one after the
    /// other; MariaDB gets each when the one before is answered.
    ///
    /// # Errors
    /// The first fault. The transaction is then to be rolled back.
    pub async fn run(&mut self, calls: &[Call<'_>]) -> Result<Vec<Vec<Row>>, Fault> {
        let Self { server, schema } = self;
        match server {
            Server::PostgreSql(session) => session.run(calls, schema).await,
            Server::MariaDb(session) => session.run(calls, schema).await,
        }
    }

    /// Runs a statement without parameters that is not prepared, as it stands.
    ///
    /// # Errors
    /// The server's fault.
    pub async fn query(&mut self, text: &str) -> Result<Vec<Row>, Fault> {
        match &mut self.server {
            Server::PostgreSql(session) => session.query(text).await,
            Server::MariaDb(session) => session.query(text).await,
        }
    }

    /// The same, with the schema before the names of tables.
    ///
    /// # Errors
    /// The server's fault.
    pub async fn query_tables(&mut self, text: &str) -> Result<Vec<Row>, Fault> {
        let text = self.schema.qualified(text);
        self.query(&text).await
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
        let table = self.schema.qualified(&format!("@{table}"));
        match &mut self.server {
            Server::PostgreSql(session) => session.load(&table, next).await,
            Server::MariaDb(session) => session.load(&table, next).await,
        }
    }
}

//! A connection to either database: the seam between transactions and servers.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use virtbench_record::DatabaseKind;
use virtbench_users::runtime;

use crate::address::{Connect, Manner};
use crate::error::{Fault, OltpError, no_answer};
use crate::mariadb::MariaDb;
use crate::postgresql::{PostgreSql, dialled};
use crate::schema::Schema;
use crate::statement::{Call, Row};

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

/// How often it is looked whether a stop was asked for.
const LOOK: Duration = Duration::from_millis(100);

/// Runs a future to its end on this thread.
pub fn wait<T>(future: impl Future<Output = Result<T, OltpError>>) -> Result<T, OltpError> {
    runtime()?.block_on(future)
}

/// A connection, with an error that says where to.
pub async fn connected(connect: &Connect, manner: Manner) -> Result<Session, OltpError> {
    let address = || Box::new(connect.address.clone());
    Session::open(connect, manner).await.map_err(|fault| OltpError::Connect { address: address(), fault })
}

/// A connection of PostgreSQL's own client, for what is no load: the caller drives the connection.
///
/// # Errors
/// No connection came about.
pub async fn postgresql_client(
    connect: &Connect,
) -> Result<
    (tokio_postgres::Client, impl Future<Output = Result<(), tokio_postgres::Error>> + use<>),
    OltpError,
> {
    let address = || Box::new(connect.address.clone());
    dialled(connect).await.map_err(|fault| OltpError::Connect { address: address(), fault })
}

/// Waits within the limit, and no longer than until a stop is asked for. `what` is said of what took longer.
pub async fn bounded<T>(
    (limit, what): (Duration, &str),
    stop: &AtomicBool,
    future: impl Future<Output = Result<T, OltpError>>,
) -> Result<T, OltpError> {
    let (mut future, begun) = (pin!(future), Instant::now());
    loop {
        match tokio::time::timeout(LOOK.min(limit), &mut future).await {
            Ok(done) => return done,
            Err(_) if stop.load(Ordering::Relaxed) => return Err(OltpError::Stopped),
            Err(_) if begun.elapsed() >= limit => {
                return Err(OltpError::server(format!("{what}: the server does not answer"))(no_answer(
                    limit,
                )));
            }
            Err(_) => {}
        }
    }
}

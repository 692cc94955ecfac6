//! The tables in a schema of PostgreSQL, for all who share it.

use std::fmt;
use std::future::Future;

use tokio::runtime::Runtime;
use tokio_postgres::{Client, Transaction};
use virtbench_oltp::{Address, Connect, postgresql_client};
use virtbench_users::runtime;

use crate::error::CatalogueError;
use crate::store::{
    Change, FORMAT, KNOWN, Known, NO_TABLES, PUT_ROOT, PUT_RUN, PUT_UNREADABLE, ROOTS, ROWS, Row, Store,
    TABLES,
};

/// Where the tables are if the address names no schema.
const SCHEMA: &str = "virtbench_history";
/// Who makes the tables holds this lock; any number that no other program is likely to take.
const LOCK: i64 = 0x7662_6863;

/// A connection.
pub(crate) struct PostgreSql {
    address: Box<Address>,
    runtime: Runtime,
    client: Client,
    is_read_only: bool,
}

impl fmt::Debug for PostgreSql {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PostgreSql({})", self.address)
    }
}

impl PostgreSql {
    /// Connects; makes the tables where there are none, and makes those of an earlier version again. Who may only read changes
    /// nothing.
    pub(crate) fn open(connect: &Connect) -> Result<Self, CatalogueError> {
        let mut opened = Self::connected(connect)?;
        match opened.format()? {
            Some(FORMAT) => {}
            Some(format) if format > FORMAT => return Err(CatalogueError::Later(opened.address)),
            _ => opened.make_tables()?,
        }
        const MAY_WRITE: &str = "SELECT has_table_privilege('runs', 'INSERT') AND has_table_privilege('runs', 'DELETE') \
                                 AND NOT current_setting('transaction_read_only')::bool AND NOT pg_is_in_recovery()";
        let may_write: bool =
            opened.asked(async |client| client.query_one(MAY_WRITE, &[]).await?.try_get(0))?;
        opened.is_read_only = !may_write;
        Ok(opened)
    }

    /// Connects to read; nothing where there are no tables, or those of another version.
    pub(crate) fn open_to_read(connect: &Connect) -> Result<Option<Self>, CatalogueError> {
        let mut opened = Self::connected(connect)?;
        opened.is_read_only = true;
        Ok((opened.format()? == Some(FORMAT)).then_some(opened))
    }

    fn connected(connect: &Connect) -> Result<Self, CatalogueError> {
        let address = Box::new(connect.address.clone());
        let runtime =
            runtime().map_err(|source| CatalogueError::File { path: "a runtime".into(), source })?;
        let (client, connection) = runtime.block_on(postgresql_client(connect))?;
        // It is driven while something is waited for; what is wrong with it, the client is told.
        runtime.spawn(async { drop(connection.await) });
        let schema = address.schema.as_deref().unwrap_or(SCHEMA).replace('"', "\"\"");
        let opened = Self { address, runtime, client, is_read_only: false };
        let path = format!("SET search_path TO \"{schema}\"");
        opened.asked(async |client| client.batch_execute(&path).await)?;
        Ok(opened)
    }

    /// The format of the tables, where there are some.
    fn format(&self) -> Result<Option<i32>, CatalogueError> {
        self.asked(async |client| {
            let is_there = client.query_one("SELECT to_regclass('version') IS NOT NULL", &[]).await?;
            if !is_there.try_get::<_, bool>(0)? {
                return Ok(None);
            }
            client.query_opt("SELECT format FROM version", &[]).await?.map(|row| row.try_get(0)).transpose()
        })
    }

    /// Of two that find none, the second one waits and looks again.
    fn make_tables(&mut self) -> Result<(), CatalogueError> {
        let schema = self.address.schema.as_deref().unwrap_or(SCHEMA).replace('"', "\"\"");
        let address = self.address.clone();
        let made = self.runtime.block_on(async {
            let transaction = self.client.transaction().await?;
            transaction.query_one("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
            transaction.batch_execute(&format!("CREATE SCHEMA IF NOT EXISTS \"{schema}\"")).await?;
            let is_there = transaction.query_one("SELECT to_regclass('version') IS NOT NULL", &[]).await?;
            let mut roots = Vec::new();
            if is_there.try_get(0)? {
                let format: i32 =
                    transaction.query_one("SELECT format FROM version", &[]).await?.try_get(0)?;
                if format >= FORMAT {
                    return transaction.commit().await;
                }
                roots = transaction.query("SELECT machine, path FROM roots", &[]).await?;
            }
            transaction.batch_execute(NO_TABLES).await?;
            transaction.batch_execute(TABLES).await?;
            transaction.execute("INSERT INTO version (format) VALUES ($1)", &[&FORMAT]).await?;
            for root in roots {
                let [machine, path]: [String; 2] = [root.try_get(0)?, root.try_get(1)?];
                transaction.execute(PUT_ROOT, &[&machine, &path]).await?;
            }
            transaction.commit().await
        });
        made.map_err(|source| CatalogueError::PostgreSql { address, source })
    }

    fn asked<T>(
        &self,
        ask: impl AsyncFnOnce(&Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, CatalogueError> {
        self.waited(ask(&self.client))
    }

    fn waited<T>(
        &self,
        future: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, CatalogueError> {
        let refused = |source| CatalogueError::PostgreSql { address: self.address.clone(), source };
        self.runtime.block_on(future).map_err(refused)
    }
}

impl Store for PostgreSql {
    fn roots(&mut self, machine: &str) -> Result<Vec<String>, CatalogueError> {
        self.asked(async |client| {
            client.query(ROOTS, &[&machine]).await?.iter().map(|row| row.try_get(0)).collect()
        })
    }

    fn known(&mut self, machine: &str) -> Result<Vec<Known>, CatalogueError> {
        self.asked(async |client| {
            let known = |row: &tokio_postgres::Row| {
                let why: String = row.try_get(2)?;
                let why = Some(why).filter(|why| !why.is_empty());
                Ok(Known { folder: row.try_get(0)?, state: row.try_get(1)?, why })
            };
            client.query(KNOWN, &[&machine]).await?.iter().map(known).collect()
        })
    }

    fn change(&mut self, machine: &str, changes: &[Change]) -> Result<(), CatalogueError> {
        let address = self.address.clone();
        let changed = self.runtime.block_on(async {
            let transaction = self.client.transaction().await?;
            for change in changes {
                made(&transaction, machine, change).await?;
            }
            transaction.commit().await
        });
        changed.map_err(|source| CatalogueError::PostgreSql { address, source })
    }

    fn rows(&self) -> Result<Vec<Row>, CatalogueError> {
        self.asked(async |client| client.query(ROWS, &[]).await?.iter().map(row).collect())
    }

    fn is_read_only(&self) -> bool {
        self.is_read_only
    }
}

fn row(row: &tokio_postgres::Row) -> Result<Row, tokio_postgres::Error> {
    Ok(Row {
        machine: row.try_get(0)?,
        folder: row.try_get(1)?,
        state: row.try_get(2)?,
        started_unix_s: row.try_get(3)?,
        study: row.try_get(4)?,
        parts: row.try_get(5)?,
        identity: row.try_get(6)?,
        load: row.try_get(7)?,
        host: row.try_get(8)?,
        versions: row.try_get(9)?,
        tags: row.try_get(10)?,
        measures: row.try_get(11)?,
    })
}

async fn made(
    transaction: &Transaction<'_>,
    machine: &str,
    change: &Change,
) -> Result<(), tokio_postgres::Error> {
    match change {
        Change::Root(path) => {
            transaction.execute(PUT_ROOT, &[&machine, path]).await?;
        }
        Change::Run(row) => {
            let Row {
                folder,
                state,
                started_unix_s,
                study,
                parts,
                identity,
                load,
                host,
                versions,
                tags,
                measures,
                ..
            } = &**row;
            delete(transaction, "unreadable", machine, folder).await?;
            transaction
                .execute(
                    PUT_RUN,
                    &[
                        &machine,
                        folder,
                        state,
                        started_unix_s,
                        study,
                        parts,
                        identity,
                        load,
                        host,
                        versions,
                        tags,
                        measures,
                    ],
                )
                .await?;
        }
        Change::Unreadable { folder, state, why } => {
            delete(transaction, "runs", machine, folder).await?;
            transaction.execute(PUT_UNREADABLE, &[&machine, folder, state, why]).await?;
        }
        Change::Gone(folder) => {
            delete(transaction, "runs", machine, folder).await?;
            delete(transaction, "unreadable", machine, folder).await?;
        }
    }
    Ok(())
}

async fn delete(
    transaction: &Transaction<'_>,
    table: &str,
    machine: &str,
    folder: &str,
) -> Result<(), tokio_postgres::Error> {
    let words = format!("DELETE FROM {table} WHERE machine = $1 AND folder = $2");
    transaction.execute(&words, &[&machine, &folder]).await.map(drop)
}

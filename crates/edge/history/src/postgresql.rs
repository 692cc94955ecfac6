//! The tables in a schema of PostgreSQL, for all who share it.

use std::fmt;
use std::future::Future;

use tokio::runtime::Runtime;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Transaction};
use virtbench_oltp::{Address, Connect, postgresql_client};
use virtbench_users::runtime;

use crate::error::{CatalogueError, said};
use crate::store::{
    Change, FORMAT, KNOWN, Known, NO_TABLES, PUT_ROOT, PUT_RUN, PUT_UNREADABLE, ROOTS, ROWS, Row, Store,
    TABLES, VERSION, is_readable, steps_from,
};

/// Where the tables are if the address names no schema.
const SCHEMA: &str = "virtbench_history";
/// Who makes the tables holds this lock, and who writes a machine's rows this one with the machine; any number that no other
/// program is likely to take.
const LOCK: i32 = 0x7662_6863;
/// Whether a role may do all that a writer does, here and now.
const MAY_WRITE: &str = "SELECT bool_and(has_table_privilege(name, kind)) AND NOT current_setting('transaction_read_only')::bool \
     AND NOT pg_is_in_recovery() FROM (VALUES ('roots', 'INSERT'), ('runs', 'INSERT'), ('runs', 'UPDATE'), ('runs', 'DELETE'), \
     ('unreadable', 'INSERT'), ('unreadable', 'UPDATE'), ('unreadable', 'DELETE')) AS needed (name, kind)";

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
    /// Connects; makes the tables where there are none, and changes those of an earlier version. Who may only read changes nothing.
    pub(crate) fn open(connect: &Connect) -> Result<Self, CatalogueError> {
        let mut opened = Self::connected(connect)?;
        let format = opened.format()?;
        let is_old = format.is_none_or(|format| format < FORMAT);
        match format {
            Some(format) if format > FORMAT => return Err(opened.later()),
            Some(format) if is_readable(format) => opened.is_read_only = !opened.may_write()?,
            _ => {}
        }
        if is_old && !opened.is_read_only {
            opened.make_tables()?;
            opened.is_read_only = !opened.may_write()?;
        }
        Ok(opened)
    }

    /// Connects to read; nothing where there are no tables, or those of a version that cannot be read as they are.
    pub(crate) fn open_to_read(connect: &Connect) -> Result<Option<Self>, CatalogueError> {
        let mut opened = Self::connected(connect)?;
        opened.is_read_only = true;
        match opened.format()? {
            Some(format) if format > FORMAT => Err(opened.later()),
            Some(format) if is_readable(format) => Ok(Some(opened)),
            _ => Ok(None),
        }
    }

    fn later(self) -> CatalogueError {
        CatalogueError::Later {
            place: self.address.to_string(),
            instead: "another schema (?schema=NAME in the address)",
        }
    }

    fn may_write(&self) -> Result<bool, CatalogueError> {
        self.asked(async |client| client.query_one(MAY_WRITE, &[]).await?.try_get(0))
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

    /// Of two that find none or old ones, the second one waits and looks again.
    fn make_tables(&mut self) -> Result<(), CatalogueError> {
        let schema = self.address.schema.clone().unwrap_or_else(|| SCHEMA.to_owned());
        let quoted = schema.replace('"', "\"\"");
        let address = self.address.clone();
        let made = self.runtime.block_on(async {
            let transaction = self.client.transaction().await?;
            transaction.query_one("SELECT pg_advisory_xact_lock($1)", &[&i64::from(LOCK)]).await?;
            // A look into the catalogs, after which names are looked up anew: another may have made the schema just now.
            const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1)";
            let has_schema = transaction.query_one(HAS_SCHEMA, &[&schema]).await?;
            let is_there = transaction.query_one("SELECT to_regclass('version') IS NOT NULL", &[]).await?;
            if is_there.try_get(0)? {
                let format: i32 =
                    transaction.query_one("SELECT format FROM version", &[]).await?.try_get(0)?;
                if format < FORMAT {
                    migrate(&transaction, format).await?;
                }
                return transaction.commit().await;
            }
            // Who may make tables in a schema that is there need not have the right to make schemas.
            if !has_schema.try_get::<_, bool>(0)? {
                transaction.batch_execute(&format!("CREATE SCHEMA \"{quoted}\"")).await?;
            }
            new_tables(&transaction).await?;
            transaction.commit().await
        });
        let refused = [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::READ_ONLY_SQL_TRANSACTION];
        made.map_err(|source| match source.code() {
            Some(code) if refused.contains(code) => {
                CatalogueError::MayNot { address, said: said(&source), schema }
            }
            _ => CatalogueError::PostgreSql { address, source },
        })
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
                Ok(Known { folder: row.try_get(0)?, state: row.try_get(1)?, why, read_by: row.try_get(3)? })
            };
            client.query(KNOWN, &[&machine]).await?.iter().map(known).collect()
        })
    }

    fn change(&mut self, machine: &str, changes: &[Change]) -> Result<(), CatalogueError> {
        let address = self.address.clone();
        let changed = self.runtime.block_on(async {
            let transaction = self.client.transaction().await?;
            // Two that write the same rows in another order would wait for each other.
            transaction
                .query_one("SELECT pg_advisory_xact_lock($1, hashtext($2))", &[&LOCK, &machine])
                .await?;
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

/// Changes the tables of an earlier format step by step, or makes them anew and keeps the folders to look through.
async fn migrate(transaction: &Transaction<'_>, format: i32) -> Result<(), tokio_postgres::Error> {
    if let Some(steps) = steps_from(format) {
        for step in steps {
            transaction.batch_execute(step).await?;
        }
        return transaction.execute("UPDATE version SET format = $1", &[&FORMAT]).await.map(drop);
    }
    let roots = transaction.query("SELECT machine, path FROM roots", &[]).await?;
    transaction.batch_execute(NO_TABLES).await?;
    new_tables(transaction).await?;
    for root in roots {
        let [machine, path]: [String; 2] = [root.try_get(0)?, root.try_get(1)?];
        transaction.execute(PUT_ROOT, &[&machine, &path]).await?;
    }
    Ok(())
}

async fn new_tables(transaction: &Transaction<'_>) -> Result<(), tokio_postgres::Error> {
    transaction.batch_execute(TABLES).await?;
    transaction.execute("INSERT INTO version (format) VALUES ($1)", &[&FORMAT]).await.map(drop)
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
                        &VERSION,
                    ],
                )
                .await?;
        }
        Change::Unreadable { folder, state, why } => {
            delete(transaction, "runs", machine, folder).await?;
            transaction.execute(PUT_UNREADABLE, &[&machine, folder, state, why, &VERSION]).await?;
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

//! Populating a database ([TPC-C 5.11], clause 4.3).

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use virtbench_record::DatabaseKind;

use crate::address::{Connect, Manner};
use crate::error::{Fault, Left, OltpError, no_answer};
use crate::exclusive::Exclusive;
use crate::mark::{self, Found, find_schema, refuse_standby};
use crate::population::{Population, Rows};
use crate::schema::Schema;
use crate::session::{Session, bounded, connected, wait};
use crate::tables::{Checksum, Table};

/// Rows are handed over in pieces of so many bytes.
const PIECE: usize = 256 << 10;
/// What each connection loads: three at a time, each table by one alone, so that rows always lie in the same order.
const LOADS: [&[Table]; 3] = [
    &[Table::Stock],
    &[Table::OrderLine, Table::NewOrder],
    &[Table::Customer, Table::Orders, Table::History, Table::Item, Table::District, Table::Warehouse],
];
/// The longest that making empty tables may take, removing others included.
const BEGIN: (Duration, &str) = (Duration::from_secs(300), "the tables cannot be made");
/// The longest that removing tables may take.
const CLEAN_UP: Duration = Duration::from_secs(30);
/// How often progress is told.
const LOOK: Duration = Duration::from_millis(200);
/// Without a row more for this long, the server hangs.
const STALLED: Duration = Duration::from_secs(120);
/// The longest that indexes may take, and as much again for each warehouse.
const INDEX_SECONDS: u64 = 300;
const INDEX_SECONDS_EACH: u64 = 20;

/// How far a population is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Rows loaded.
    pub rows: u64,
    /// Rows there will be, order lines as many as are expected.
    pub of: u64,
}

/// What was loaded.
#[derive(Debug, Clone, PartialEq)]
pub struct Populated {
    /// The schema of the tables.
    pub schema: String,
    /// Rows.
    pub rows: u64,
    /// As text, in bytes.
    pub bytes: u64,
    /// How long it took, indexes and statistics included.
    pub took: Duration,
}

#[derive(Debug, Default)]
struct Loaded {
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// Makes tables, fills them, and makes keys and indexes. With `replace` a population that is there is removed first. An
/// unfinished one always is, because nothing can be done with it. Only tables that carry a mark of virtbench's are. What fails or is
/// stopped leaves no table, or ones that are marked as unfinished.
///
/// # Errors
/// No connection, somebody who populates the same schema, other people's tables, a population without `replace`, a full disk, a stop.
pub fn populate(
    connect: &Connect,
    population: Population,
    replace: bool,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Populated, OltpError> {
    if population.warehouses == 0 {
        return Err(OltpError::Plan("a population has one warehouse at least".into()));
    }
    let begun = Instant::now();
    wait(async {
        let kind = connect.address.kind;
        let made = bounded(BEGIN, stop, emptied(connect, population, replace)).await;
        let (schema, mut exclusive) = made?;
        let loaded = Arc::new(Loaded::default());
        let site = Site { connect, schema: &schema, population, loaded: &loaded };
        let done = async {
            fill(&site, stop, progress).await?;
            exclusive.confirm().await?;
            // Anew: one that had waited until now may have been thrown out for that.
            let mut session = connected(connect, Manner::default()).await?;
            session.set_schema(&schema);
            let cannot = OltpError::server("the population cannot be marked as whole");
            mark::complete(&mut session).await.map_err(cannot)
        };
        let done = done.await;
        if let Err(why) = done {
            let left = clean_up(connect, kind, &schema).await;
            exclusive.release().await;
            return Err(OltpError::Abandoned { why: Box::new(why), left });
        }
        exclusive.release().await;
        let (rows, bytes) = (loaded.rows.load(Ordering::Relaxed), loaded.bytes.load(Ordering::Relaxed));
        Ok(Populated { schema: schema.name().to_owned(), rows, bytes, took: begun.elapsed() })
    })
}

/// The schema with its empty tables, and the lock on it.
async fn emptied(
    connect: &Connect,
    population: Population,
    replace: bool,
) -> Result<(Schema, Exclusive), OltpError> {
    let mut session = connected(connect, Manner::default()).await?;
    let schema = find_schema(&mut session, &connect.address).await?;
    refuse_standby(&mut session, &connect.address).await?;
    session.set_schema(&schema);
    let exclusive = Exclusive::take(connect, &schema).await?;
    match prepare(&mut session, connect, &schema, population, replace).await {
        Ok(()) => Ok((schema, exclusive)),
        Err(error) => {
            exclusive.release().await;
            Err(error)
        }
    }
}

/// What is loaded, and where to.
struct Site<'a> {
    connect: &'a Connect,
    schema: &'a Schema,
    population: Population,
    loaded: &'a Arc<Loaded>,
}

/// Finds out whether the schema may be used, and makes its tables.
async fn prepare(
    session: &mut Session,
    connect: &Connect,
    schema: &Schema,
    population: Population,
    replace: bool,
) -> Result<(), OltpError> {
    let (address, name) = (|| Box::new(connect.address.clone()), || schema.name().to_owned());
    let kind = connect.address.kind;
    let found =
        mark::find(session, kind, schema).await.map_err(OltpError::server("the tables cannot be listed"))?;
    match found {
        Found::Foreign(table) => {
            return Err(OltpError::Foreign { address: address(), schema: name(), table });
        }
        Found::Earlier => return Err(OltpError::Earlier(address(), name())),
        Found::Whole(Population { warehouses, .. }) if !replace => {
            return Err(OltpError::Populated { address: address(), schema: name(), warehouses });
        }
        Found::OtherFormat if !replace => return Err(OltpError::OtherFormat(address(), name())),
        Found::Nothing | Found::Unfinished | Found::Whole(_) | Found::OtherFormat => {}
    }
    // MariaDB commits each of these statements by itself.
    let is_whole = kind == DatabaseKind::PostgreSql;
    let made = async {
        let mark = mark::new();
        if is_whole {
            session.query("BEGIN").await?;
        }
        mark::remove(session, kind, schema).await?;
        mark::begin(session, kind, population, &mark).await?;
        if is_whole {
            session.query("COMMIT").await?;
        }
        Ok::<(), Fault>(())
    };
    made.await.map_err(OltpError::server(format!("the tables cannot be made in schema {}", schema.name())))
}

async fn fill(
    site: &Site<'_>,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), OltpError> {
    let Site { population, loaded, .. } = *site;
    let order_lines = 10 * Table::Orders.rows_of(population.warehouses).unwrap_or(0);
    let of = Table::ALL.iter().map(|table| table.rows_of(population.warehouses).unwrap_or(order_lines)).sum();
    let loads = LOADS.iter().map(|tables| load_all(site, tables));
    let mut all = pin!(try_join_all(loads));
    let (mut last, mut moved) = (0, Instant::now());
    let index_limit = INDEX_SECONDS + INDEX_SECONDS_EACH * u64::from(population.warehouses);
    loop {
        let looked = tokio::time::timeout(LOOK, &mut all).await;
        let rows = loaded.rows.load(Ordering::Relaxed);
        progress(Progress { rows: rows.min(of), of });
        match looked {
            Ok(done) => return done.map(drop),
            Err(_) if stop.load(Ordering::Relaxed) => return Err(OltpError::Stopped),
            Err(_) => {}
        }
        if rows != last {
            (last, moved) = (rows, Instant::now());
        }
        let limit = if rows * 100 < of * 98 { STALLED } else { Duration::from_secs(index_limit) };
        if moved.elapsed() > limit {
            return Err(OltpError::server("the population stands still")(no_answer(limit)));
        }
    }
}

/// Loads tables one after the other through a connection of their own.
async fn load_all(site: &Site<'_>, tables: &[Table]) -> Result<(), OltpError> {
    let mut session = connected(site.connect, Manner::default()).await?;
    session.set_schema(site.schema);
    for table in tables {
        let (name, loaded) = (table.name(), Arc::clone(site.loaded));
        let mut rows = Rows::new(*table, site.population);
        let given = Arc::new(Mutex::new(Checksum::default()));
        let adding = Arc::clone(&given);
        let next = move || {
            let mut piece = Vec::with_capacity(PIECE + PIECE / 8);
            let count = rows.fill(&mut piece, PIECE);
            held(&adding).add(&piece);
            loaded.rows.fetch_add(count, Ordering::Relaxed);
            loaded.bytes.fetch_add(piece.len() as u64, Ordering::Relaxed);
            (!piece.is_empty()).then_some(piece)
        };
        session
            .load(name, next)
            .await
            .map_err(OltpError::server(format!("table {name} cannot be loaded")))?;
        for statement in table.finish(site.connect.address.kind) {
            let done = session.query_tables(&statement).await;
            done.map_err(OltpError::server(format!("table {name} cannot be finished ({statement})")))?;
        }
        let given = *held(&given);
        let failed = OltpError::server(format!("table {name} cannot be compared with what it was given"));
        let query = Checksum::query(*table, site.connect.address.kind);
        let found = Checksum::of(&session.query_tables(&query).await.map_err(failed)?).unwrap_or_default();
        if found != given {
            return Err(OltpError::Different { table: name, given, found });
        }
    }
    Ok(())
}

fn held(checksum: &Mutex<Checksum>) -> MutexGuard<'_, Checksum> {
    checksum.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes what was made, if the server still lets us; what stays is known to be unfinished.
async fn clean_up(connect: &Connect, kind: DatabaseKind, schema: &Schema) -> Left {
    let removed = async {
        let mut session = Session::open(connect, Manner::default()).await?;
        session.set_schema(schema);
        if kind == DatabaseKind::PostgreSql {
            session.query("BEGIN").await?;
            session.query("SET LOCAL lock_timeout = '5s'").await?;
        }
        mark::remove(&mut session, kind, schema).await?;
        if kind == DatabaseKind::PostgreSql {
            session.query("COMMIT").await?;
        }
        Ok::<(), Fault>(())
    };
    match tokio::time::timeout(CLEAN_UP, removed).await.unwrap_or_else(|_| Err(no_answer(CLEAN_UP))) {
        Ok(()) => Left::Nothing,
        Err(fault) => Left::Unfinished(fault.words),
    }
}

//! Whose tables are: each of the nine, and a table beside them that says what the population is, carries a mark of virtbench's as its
//! comment. A table without one is somebody else's, whatever it is called.

use virtbench_mark::Mark;
use virtbench_record::DatabaseKind;

use crate::address::{Address, Connect, Manner};
use crate::error::{Fault, FaultKind, OltpError};
use crate::exclusive::Exclusive;
use crate::population::Population;
use crate::schema::Schema;
use crate::session::{Session, connected, wait};
use crate::statement::Value;
use crate::tables::Table;

/// The table that says what the population is.
pub const TABLE: &str = "virtbench_oltp";

/// Raised when a seed gives other rows, or tables change.
pub const FORMAT: i64 = 2;

/// What it says.
const LOOK: &str = "SELECT format, warehouses, seed, complete FROM @virtbench_oltp";

/// What the marks are for.
const PURPOSE: &str = "oltp";

/// What a schema has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// None of the tables.
    Nothing,
    /// A table that virtbench did not make.
    Foreign(String),
    /// Tables of an earlier version, which did not mark each.
    Earlier,
    /// A population that was not finished.
    Unfinished,
    /// A population of another format.
    OtherFormat,
    /// A population.
    Whole(Population),
}

/// A table of one of our names.
struct Named {
    name: String,
    is_ours: bool,
}

async fn named(session: &mut Session, kind: DatabaseKind, schema: &Schema) -> Result<Vec<Named>, Fault> {
    let names: Vec<String> =
        Table::ALL.iter().map(|table| table.name()).chain([TABLE]).map(|name| format!("'{name}'")).collect();
    let (names, schema) = (names.join(", "), schema.literal());
    let look = match kind {
        // The catalogue has what others may not read as well, and views.
        DatabaseKind::PostgreSql => format!(
            "SELECT CAST(relname AS text), COALESCE(obj_description(c.oid, 'pg_class'), '') FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = relnamespace WHERE nspname = {schema} AND relname IN ({names})"
        ),
        DatabaseKind::MariaDb => format!(
            "SELECT table_name, table_comment FROM information_schema.tables \
             WHERE table_schema = {schema} AND table_name IN ({names})"
        ),
    };
    let of_row = |row: &Vec<crate::statement::Value>| {
        let [name, comment] = row.as_slice() else { return None };
        let mark = Mark::parse(comment.text());
        let is_ours = mark.is_some_and(|mark| mark.purpose() == PURPOSE);
        Some(Named { name: name.text().to_owned(), is_ours })
    };
    Ok(session.query(&look).await?.iter().filter_map(of_row).collect())
}

/// Looks for a population.
pub async fn find(session: &mut Session, kind: DatabaseKind, schema: &Schema) -> Result<Found, Fault> {
    let tables = named(session, kind, schema).await?;
    let has_mark_table = tables.iter().any(|table| table.name == TABLE);
    if let Some(foreign) = tables.iter().find(|table| !table.is_ours) {
        let is_earlier = has_mark_table
            && tables.iter().all(|table| !table.is_ours)
            && session.query_tables(LOOK).await.is_ok();
        return Ok(if is_earlier { Found::Earlier } else { Found::Foreign(foreign.name.clone()) });
    }
    if !has_mark_table {
        return Ok(if tables.is_empty() { Found::Nothing } else { Found::Unfinished });
    }
    let rows = session.query_tables(LOOK).await?;
    let Some([format, warehouses, seed, complete]) = rows.first().map(Vec::as_slice) else {
        return Ok(Found::Unfinished);
    };
    if format.int() != FORMAT {
        return Ok(Found::OtherFormat);
    }
    let population = Population { warehouses: warehouses.key(), seed: seed.text().parse().unwrap_or(0) };
    let is_whole = complete.int() == 1 && tables.len() == Table::ALL.len() + 1 && population.warehouses > 0;
    Ok(if is_whole { Found::Whole(population) } else { Found::Unfinished })
}

/// The schema, and the population that there must be in it. The session is told the schema.
pub async fn require(session: &mut Session, connect: &Connect) -> Result<(Schema, Population), OltpError> {
    let Connect { address, .. } = connect;
    let schema = find_schema(session, address).await?;
    session.set_schema(&schema);
    let found = find(session, address.kind, &schema).await;
    let of = |wrong: fn(Box<Address>, String) -> OltpError| {
        Err(wrong(Box::new(address.clone()), schema.name().to_owned()))
    };
    match found.map_err(OltpError::server("the population cannot be looked up"))? {
        Found::Whole(population) => Ok((schema, population)),
        Found::Nothing | Found::Foreign(_) => of(OltpError::NotPopulated),
        Found::Unfinished => {
            // A run that works on it holds the lock.
            Exclusive::take(connect, &schema).await?.release().await;
            of(OltpError::Unfinished)
        }
        Found::OtherFormat | Found::Earlier => of(OltpError::OtherFormat),
    }
}

/// Makes all tables, marked and empty; from now on they are virtbench's, and unfinished.
pub async fn begin(
    session: &mut Session,
    kind: DatabaseKind,
    population: Population,
    mark: &Mark,
) -> Result<(), Fault> {
    let columns = "(format int, warehouses int, seed varchar(20), complete int)";
    let making = match kind {
        DatabaseKind::PostgreSql => {
            vec![format!("CREATE TABLE @{TABLE} {columns}"), format!("COMMENT ON TABLE @{TABLE} IS '{mark}'")]
        }
        DatabaseKind::MariaDb => {
            vec![format!("CREATE TABLE @{TABLE} {columns} ENGINE=InnoDB COMMENT='{mark}'")]
        }
    };
    let Population { warehouses, seed } = population;
    let row = format!("INSERT INTO @{TABLE} VALUES ({FORMAT}, {warehouses}, '{seed}', 0)");
    let nine = Table::ALL.iter().flat_map(|table| table.create(kind, &mark.to_string()));
    for statement in making.into_iter().chain([row]).chain(nine) {
        session.query_tables(&statement).await?;
    }
    Ok(())
}

/// Marks the population as whole.
pub async fn complete(session: &mut Session) -> Result<(), Fault> {
    session.query_tables(&format!("UPDATE @{TABLE} SET complete = 1")).await.map(drop)
}

/// Removes every table that carries our mark; the one that says what the population is last, so that what a kill leaves is still
/// known to be unfinished.
pub async fn remove(session: &mut Session, kind: DatabaseKind, schema: &Schema) -> Result<(), Fault> {
    let mut tables = named(session, kind, schema).await?;
    tables.sort_by_key(|table| table.name == TABLE);
    for table in tables.iter().filter(|table| table.is_ours) {
        session.query_tables(&format!("DROP TABLE @{}", table.name)).await?;
    }
    Ok(())
}

/// The mark of a population that this process makes.
pub fn new() -> Mark {
    Mark::new(virtbench_mark::RunId::new_random(), PURPOSE)
}

/// The population of a database, which must have one.
///
/// # Errors
/// No connection, no population, one that was not finished.
pub fn find_population(connect: &Connect) -> Result<Population, OltpError> {
    wait(async {
        let mut session = connected(connect, Manner::default()).await?;
        Ok(require(&mut session, connect).await?.1)
    })
}

/// The one that the address names, or else that in which the server makes new tables.
///
/// # Errors
/// There is none, or the server fails.
pub async fn find_schema(session: &mut Session, address: &Address) -> Result<Schema, OltpError> {
    if address.kind == DatabaseKind::MariaDb {
        refuse_others(session).await?;
    }
    let (kind, place) = match (address.kind, &address.schema) {
        (kind, Some(name)) => return Ok(Schema::new(kind, name)),
        (kind @ DatabaseKind::PostgreSql, None) => (kind, "current_schema()"),
        (kind @ DatabaseKind::MariaDb, None) => (kind, "DATABASE()"),
    };
    let failed = OltpError::server("the schema cannot be looked up");
    let rows = session.query(&format!("SELECT CAST({place} AS char(64))")).await.map_err(failed)?;
    let name = rows.first().and_then(|row| row.first()).map(|name| name.text().trim_end().to_owned());
    name.filter(|name| !name.is_empty()).map(|name| Schema::new(kind, name)).ok_or_else(|| {
        let none = Fault::new(FaultKind::Other, "its search_path has no schema that exists");
        OltpError::server("no schema for tables: name one with ?schema=NAME")(none)
    })
}

/// MariaDB's protocol is MySQL's, which has other settings, locks and defaults.
async fn refuse_others(session: &mut Session) -> Result<(), OltpError> {
    let failed = OltpError::server("the server cannot be asked what it is");
    let rows = session.query("SELECT VERSION()").await.map_err(failed)?;
    let version = rows.first().and_then(|row| row.first()).map_or_else(String::new, Value::words);
    if version.to_ascii_lowercase().contains("mariadb") {
        Ok(())
    } else {
        Err(OltpError::NotMariaDb(version))
    }
}

/// A server that follows another one accepts no changes.
///
/// # Errors
/// It is one, or fails.
pub async fn refuse_standby(session: &mut Session, address: &Address) -> Result<(), OltpError> {
    if address.kind != DatabaseKind::PostgreSql {
        return Ok(());
    }
    let failed = OltpError::server("the server cannot be asked whether it is a standby");
    let rows = session.query("SELECT CAST(pg_is_in_recovery() AS int)").await.map_err(failed)?;
    let is_standby = rows.first().and_then(|row| row.first()).is_some_and(|standby| standby.int() == 1);
    if is_standby { Err(OltpError::Standby(Box::new(address.clone()))) } else { Ok(()) }
}

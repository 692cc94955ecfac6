//! A table beside the nine that says what the population is, and that virtbench made it.

use virtbench_record::DatabaseKind;

use crate::address::Address;
use crate::error::OltpError;
use crate::fault::Fault;
use crate::population::Population;
use crate::session::Session;
use crate::tables::Table;

/// The table's name.
pub const TABLE: &str = "virtbench_oltp";
/// Raised when a seed gives other rows, or tables change.
const FORMAT: i64 = 1;

/// What a database has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// None of the tables.
    Nothing,
    /// A table that virtbench did not make.
    Foreign(String),
    /// A population that was not finished.
    Unfinished,
    /// A population of another format.
    OtherFormat,
    /// A population.
    Whole(Population),
}

/// Looks for a population.
pub async fn find(session: &mut Session, kind: DatabaseKind) -> Result<Found, Fault> {
    let schema = match kind {
        DatabaseKind::PostgreSql => "current_schema()",
        DatabaseKind::MariaDb => "DATABASE()",
    };
    let names: Vec<String> =
        Table::ALL.iter().map(|table| table.name()).chain([TABLE]).map(|name| format!("'{name}'")).collect();
    let rows = session
        .query(&format!(
            "SELECT CAST(table_name AS CHAR(64)) FROM information_schema.tables \
             WHERE table_schema = {schema} AND table_name IN ({})",
            names.join(", ")
        ))
        .await?;
    let tables: Vec<&str> =
        rows.iter().filter_map(|row| row.first()).map(|name| name.text().trim_end()).collect();
    if !tables.contains(&TABLE) {
        return Ok(tables.first().map_or(Found::Nothing, |table| Found::Foreign((*table).to_owned())));
    }
    let rows = session.query(&format!("SELECT format, warehouses, seed, complete FROM {TABLE}")).await?;
    let Some([format, warehouses, seed, complete]) = rows.first().map(Vec::as_slice) else {
        return Ok(Found::Unfinished);
    };
    if format.int() != FORMAT {
        return Ok(Found::OtherFormat);
    }
    let seed = seed.text().parse().unwrap_or(0);
    let population = Population { warehouses: warehouses.key(), seed };
    Ok(if complete.int() == 1 { Found::Whole(population) } else { Found::Unfinished })
}

/// The population that there must be.
pub async fn require(session: &mut Session, address: &Address) -> Result<Population, OltpError> {
    let found = find(session, address.kind).await;
    match found.map_err(OltpError::server("the population cannot be looked up"))? {
        Found::Whole(population) => Ok(population),
        Found::Nothing | Found::Foreign(_) => Err(OltpError::NotPopulated(address.clone())),
        Found::Unfinished => Err(OltpError::Unfinished(address.clone())),
        Found::OtherFormat => Err(OltpError::OtherFormat(address.clone())),
    }
}

/// Marks the database: from now on its tables are virtbench's, and unfinished.
pub async fn begin(session: &mut Session, population: Population) -> Result<(), Fault> {
    let columns = "format int, warehouses int, seed varchar(20), complete int";
    session.query(&format!("CREATE TABLE {TABLE} ({columns})")).await?;
    let Population { warehouses, seed } = population;
    session.query(&format!("INSERT INTO {TABLE} VALUES ({FORMAT}, {warehouses}, '{seed}', 0)")).await?;
    Ok(())
}

/// Marks the population as whole.
pub async fn complete(session: &mut Session) -> Result<(), Fault> {
    session.query(&format!("UPDATE {TABLE} SET complete = 1")).await.map(drop)
}

/// Removes everything; the mark last, so that what is left is known to be virtbench's.
pub async fn remove(session: &mut Session) -> Result<(), Fault> {
    for name in Table::ALL.iter().map(|table| table.name()).chain([TABLE]) {
        session.query(&format!("DROP TABLE IF EXISTS {name}")).await?;
    }
    Ok(())
}

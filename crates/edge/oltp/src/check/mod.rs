//! Conditions of consistency ([TPC-C 5.11], clause 3.3.2), and that there is something of which they can hold.

mod conditions;
mod districts;
mod rows;
#[cfg(test)]
mod tests;
mod violations;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::FutureExt;
use virtbench_record::{DatabaseKind, OltpIsolation, OltpViolation};

use crate::address::Connect;
use crate::blocking::{bounded, connected, wait};
use crate::error::OltpError;
use crate::manner::Manner;
use crate::mark;
use crate::population::Population;
use crate::session::Session;
use crate::tables::Table;
use crate::value::{Row, Value};
use conditions::{CONDITIONS, Condition};
use districts::Districts;

/// Conditions that sums over districts decide.
const REQUIRED: [u32; 4] = [1, 2, 3, 4];
/// The longest that a query may take, and as much again for each warehouse.
const SECONDS: u64 = 120;
const SECONDS_EACH: u64 = 20;
/// The longest that it may take to begin.
const BEGIN: (Duration, &str) = (Duration::from_secs(60), "the conditions");

/// How far conditions go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The first four, which read each table of orders once; they hold of every warehouse that there must be.
    Required,
    /// All that hold after a load: those of each order and each customer too, and that each table has its rows.
    All,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Of what population.
    pub population: Population,
    /// Numbers of the conditions that hold.
    pub held: Vec<u32>,
    /// Conditions that do not; number 0 is that every row is there.
    pub broken: Vec<OltpViolation>,
}

/// Checks the conditions; `each` is told the number of the one that comes.
///
/// # Errors
/// No connection, no population, a server that fails or takes too long, a stop.
pub fn check(
    connect: &Connect,
    depth: Depth,
    stop: &AtomicBool,
    each: &mut dyn FnMut(u32),
) -> Result<Checked, OltpError> {
    check_within(connect, depth, None, stop, each)
}

/// The same, within a limit where there is one.
pub fn check_within(
    connect: &Connect,
    depth: Depth,
    limit: Option<Duration>,
    stop: &AtomicBool,
    each: &mut dyn FnMut(u32),
) -> Result<Checked, OltpError> {
    let all = async {
        let (mut session, population) = bounded(BEGIN, stop, begun(connect)).await?;
        let broken = Look { session: &mut session, population, stop }.broken(depth, each).await?;
        let numbers = REQUIRED.into_iter().chain(CONDITIONS.iter().map(|condition| condition.number));
        let count = if depth == Depth::All { REQUIRED.len() + CONDITIONS.len() } else { REQUIRED.len() };
        let is_held = |number: &u32| !broken.iter().any(|violation| violation.condition == *number);
        Ok(Checked { population, held: numbers.take(count).filter(is_held).collect(), broken })
    };
    wait(bounded((limit.unwrap_or(Duration::MAX), "the conditions"), stop, all))
}

/// A connection in a transaction that sees one moment, whatever ends meanwhile; and what there must be.
async fn begun(connect: &Connect) -> Result<(Session, Population), OltpError> {
    let manner = Manner { isolation: OltpIsolation::RepeatableRead, ..Manner::default() };
    let mut session = connected(connect, manner).await?;
    let (_, population) = mark::require(&mut session, connect).await?;
    let begin = match connect.address.kind {
        DatabaseKind::PostgreSql => "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY",
        DatabaseKind::MariaDb => "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY",
    };
    session.query(begin).await.map_err(OltpError::server("the conditions cannot be checked"))?;
    Ok((session, population))
}

/// A look at a database.
struct Look<'a> {
    session: &'a mut Session,
    population: Population,
    stop: &'a AtomicBool,
}

impl Look<'_> {
    async fn broken(
        &mut self,
        depth: Depth,
        each: &mut dyn FnMut(u32),
    ) -> Result<Vec<OltpViolation>, OltpError> {
        let mut broken = self.in_districts(each).await?;
        if depth == Depth::Required {
            return Ok(broken);
        }
        broken.extend(self.in_tables().await?);
        for condition in &CONDITIONS {
            each(condition.number);
            broken.extend(self.of(condition).await?);
        }
        Ok(broken)
    }

    /// What sums over districts decide.
    async fn in_districts(&mut self, each: &mut dyn FnMut(u32)) -> Result<Vec<OltpViolation>, OltpError> {
        let mut districts = Districts::default();
        for (place, query) in districts::QUERIES.iter().enumerate() {
            each(REQUIRED[place.saturating_sub(1)]);
            let rows = self.rows(query, "conditions 1 to 4").await?;
            districts.read(place, &rows);
        }
        Ok(districts.broken(self.population.warehouses))
    }

    /// Rows and values that are missing.
    async fn in_tables(&mut self) -> Result<Option<OltpViolation>, OltpError> {
        let warehouses = self.population.warehouses;
        let mut counts = Vec::new();
        for table in Table::ALL {
            let what = format!("the rows of {}", table.name());
            counts.push((table, self.rows(&rows::query(table, warehouses), &what).await?));
        }
        Ok(rows::broken(&counts, warehouses))
    }

    async fn of(&mut self, condition: &Condition) -> Result<Option<OltpViolation>, OltpError> {
        let rows = self.rows(condition.query, &format!("condition {}", condition.number)).await?;
        Ok((!rows.is_empty()).then(|| violation(condition, &rows)))
    }

    async fn rows(&mut self, query: &str, what: &str) -> Result<Vec<Row>, OltpError> {
        let limit = Duration::from_secs(SECONDS + SECONDS_EACH * u64::from(self.population.warehouses));
        let asked = self
            .session
            .query_tables(query)
            .map(|rows| rows.map_err(OltpError::server(format!("{what} cannot be checked"))));
        bounded((limit, what), self.stop, asked).await
    }
}

fn violation(condition: &Condition, rows: &[Row]) -> OltpViolation {
    let named = |row: &Row| {
        let pairs = condition.columns.iter().zip(row);
        let pairs: Vec<String> =
            pairs.map(|(name, value): (_, &Value)| format!("{name}={}", value.words())).collect();
        pairs.join(" ")
    };
    OltpViolation {
        condition: condition.number,
        words: condition.words.into(),
        rows: rows.iter().map(named).collect(),
    }
}

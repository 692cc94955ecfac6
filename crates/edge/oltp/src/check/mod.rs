//! Conditions of consistency ([TPC-C 5.11], clause 3.3.2), and that there is something of which they can hold.
//!
//! Conditions that look at each order and each customer ([TPC-C 5.11], clause 3.3.2, numbers 5 to 12), each a query for the rows that
//! break it. A value that is missing breaks a condition: nothing is equal to NULL, and a sum over NULL is NULL.
//!
//! Condition 11 holds of a new population alone, before the first Delivery, and is left out.

mod districts;
mod rows;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use futures_util::FutureExt;
use virtbench_record::{DatabaseKind, OltpIsolation, OltpViolation};

use self::districts::Districts;
use crate::address::{Connect, Manner};
use crate::error::OltpError;
use crate::mark;
use crate::population::Population;
use crate::session::{Session, bounded, connected, wait};
use crate::statement::{Row, Value};
use crate::tables::Table;

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

/// A condition with its query.
struct Condition {
    /// Its number in clause 3.3.2.
    pub number: u32,
    /// What should hold.
    pub words: &'static str,
    /// Names of the columns of a row that breaks it.
    pub columns: &'static [&'static str],
    /// Rows that break it, five at most.
    pub query: &'static str,
}

/// The seven.
const CONDITIONS: [Condition; 7] = [
    Condition {
        number: 5,
        words: "O_CARRIER_ID is null where there is a row of NEW-ORDER, and only there",
        columns: &["o_w_id", "o_d_id", "o_id", "o_carrier_id"],
        query: "SELECT o_w_id, o_d_id, o_id, o_carrier_id FROM @orders LEFT JOIN @new_order \
                ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
                WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) ORDER BY o_w_id, o_d_id, o_id LIMIT 5",
    },
    Condition {
        number: 6,
        words: "O_OL_CNT = rows of ORDER-LINE of the order",
        columns: &["o_w_id", "o_d_id", "o_id", "o_ol_cnt", "rows"],
        query: "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, counted FROM @orders LEFT JOIN \
                (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS counted FROM @order_line \
                GROUP BY ol_w_id, ol_d_id, ol_o_id) l \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE NOT COALESCE(counted = o_ol_cnt, FALSE) ORDER BY o_w_id, o_d_id, o_id LIMIT 5",
    },
    Condition {
        number: 7,
        words: "OL_DELIVERY_D is null where O_CARRIER_ID is, and only there",
        columns: &["o_w_id", "o_d_id", "o_id", "ol_number"],
        query: "SELECT o_w_id, o_d_id, o_id, ol_number FROM @orders JOIN @order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE (o_carrier_id IS NULL) <> (ol_delivery_d IS NULL) ORDER BY o_w_id, o_d_id, o_id LIMIT 5",
    },
    Condition {
        number: 8,
        words: "W_YTD = sum(H_AMOUNT)",
        columns: &["w_id", "w_ytd", "sum(h_amount)"],
        query: "SELECT w_id, w_ytd, total FROM @warehouse LEFT JOIN \
                (SELECT h_w_id, CASE WHEN COUNT(h_amount) = COUNT(*) THEN SUM(h_amount) END AS total \
                FROM @history GROUP BY h_w_id) h ON h_w_id = w_id \
                WHERE NOT COALESCE(w_ytd = total, FALSE) ORDER BY w_id LIMIT 5",
    },
    Condition {
        number: 9,
        words: "D_YTD = sum(H_AMOUNT)",
        columns: &["d_w_id", "d_id", "d_ytd", "sum(h_amount)"],
        query: "SELECT d_w_id, d_id, d_ytd, total FROM @district LEFT JOIN \
                (SELECT h_w_id, h_d_id, CASE WHEN COUNT(h_amount) = COUNT(*) THEN SUM(h_amount) END AS total \
                FROM @history GROUP BY h_w_id, h_d_id) h ON h_w_id = d_w_id AND h_d_id = d_id \
                WHERE NOT COALESCE(d_ytd = total, FALSE) ORDER BY d_w_id, d_id LIMIT 5",
    },
    Condition {
        number: 10,
        words: "C_BALANCE = sum(OL_AMOUNT of what is delivered) - sum(H_AMOUNT)",
        columns: &["c_w_id", "c_d_id", "c_id", "c_balance", "delivered", "paid"],
        query: "SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid FROM @customer \
                LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, COUNT(*) AS counted, \
                CASE WHEN COUNT(ol_amount) = COUNT(*) THEN SUM(ol_amount) END AS delivered \
                FROM @orders JOIN @order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
                GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, \
                CASE WHEN COUNT(h_amount) = COUNT(*) THEN SUM(h_amount) END AS paid FROM @history \
                GROUP BY h_c_w_id, h_c_d_id, h_c_id) h ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                WHERE NOT COALESCE(c_balance = CASE WHEN counted IS NULL THEN 0 ELSE delivered END - paid, FALSE) \
                ORDER BY c_w_id, c_d_id, c_id LIMIT 5",
    },
    Condition {
        number: 12,
        words: "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT of what is delivered)",
        columns: &["c_w_id", "c_d_id", "c_id", "c_balance", "c_ytd_payment", "delivered"],
        query: "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered FROM @customer \
                LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, COUNT(*) AS counted, \
                CASE WHEN COUNT(ol_amount) = COUNT(*) THEN SUM(ol_amount) END AS delivered \
                FROM @orders JOIN @order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
                GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                WHERE NOT COALESCE(c_balance + c_ytd_payment = CASE WHEN counted IS NULL THEN 0 ELSE delivered END, FALSE) \
                ORDER BY c_w_id, c_d_id, c_id LIMIT 5",
    },
];

#[cfg(test)]
mod tests;

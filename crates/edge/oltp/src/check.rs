//! Conditions of consistency ([TPC-C 5.11], clause 3.3.2), each a query for the rows that break it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use virtbench_record::OltpViolation;

use crate::address::Connect;
use crate::blocking::{connected, wait};
use crate::error::OltpError;
use crate::fault::{Fault, no_answer};
use crate::manner::Manner;
use crate::mark;
use crate::population::Population;

/// Conditions that are checked after each run.
const REQUIRED: usize = 4;
/// The longest that a condition may take, and as much again for each warehouse.
const SECONDS: u64 = 120;
const SECONDS_EACH: u64 = 20;

struct Condition {
    number: u32,
    words: &'static str,
    /// Names of the columns of a row that breaks it.
    columns: &'static [&'static str],
    query: &'static str,
}

/// Condition 11 holds of a new population alone, before the first Delivery, and is left out.
const CONDITIONS: [Condition; 11] = [
    Condition {
        number: 1,
        words: "W_YTD = sum(D_YTD)",
        columns: &["w_id", "w_ytd", "sum(d_ytd)"],
        query: "SELECT w_id, w_ytd, total FROM warehouse LEFT JOIN \
                (SELECT d_w_id, SUM(d_ytd) AS total FROM district GROUP BY d_w_id) d ON d_w_id = w_id \
                WHERE total IS NULL OR w_ytd <> total ORDER BY w_id LIMIT 5",
    },
    Condition {
        number: 2,
        words: "D_NEXT_O_ID - 1 = max(O_ID) = max(NO_O_ID)",
        columns: &["d_w_id", "d_id", "d_next_o_id", "max(o_id)", "max(no_o_id)"],
        query: "SELECT d_w_id, d_id, d_next_o_id, newest, undelivered FROM district \
                LEFT JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) o \
                ON o_w_id = d_w_id AND o_d_id = d_id \
                LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS undelivered FROM new_order \
                GROUP BY no_w_id, no_d_id) n ON no_w_id = d_w_id AND no_d_id = d_id \
                WHERE newest IS NULL OR d_next_o_id - 1 <> newest OR undelivered <> newest \
                ORDER BY d_w_id, d_id LIMIT 5",
    },
    Condition {
        number: 3,
        words: "max(NO_O_ID) - min(NO_O_ID) + 1 = rows of NEW-ORDER",
        columns: &["no_w_id", "no_d_id", "min(no_o_id)", "max(no_o_id)", "rows"],
        query: "SELECT no_w_id, no_d_id, MIN(no_o_id), MAX(no_o_id), COUNT(*) FROM new_order \
                GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*) \
                ORDER BY no_w_id, no_d_id LIMIT 5",
    },
    Condition {
        number: 4,
        words: "sum(O_OL_CNT) = rows of ORDER-LINE",
        columns: &["o_w_id", "o_d_id", "sum(o_ol_cnt)", "rows"],
        query: "SELECT o_w_id, o_d_id, expected, counted FROM \
                (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS expected FROM orders GROUP BY o_w_id, o_d_id) o \
                LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS counted FROM order_line GROUP BY ol_w_id, ol_d_id) l \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id WHERE counted IS NULL OR counted <> expected \
                ORDER BY o_w_id, o_d_id LIMIT 5",
    },
    Condition {
        number: 5,
        words: "O_CARRIER_ID is null where there is a row of NEW-ORDER, and only there",
        columns: &["o_w_id", "o_d_id", "o_id", "o_carrier_id"],
        query: "SELECT o_w_id, o_d_id, o_id, o_carrier_id FROM orders LEFT JOIN new_order \
                ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id \
                WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) ORDER BY o_w_id, o_d_id, o_id LIMIT 5",
    },
    Condition {
        number: 6,
        words: "O_OL_CNT = rows of ORDER-LINE of the order",
        columns: &["o_w_id", "o_d_id", "o_id", "o_ol_cnt", "rows"],
        query: "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, counted FROM orders LEFT JOIN \
                (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS counted FROM order_line \
                GROUP BY ol_w_id, ol_d_id, ol_o_id) l \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE counted IS NULL OR counted <> o_ol_cnt ORDER BY o_w_id, o_d_id, o_id LIMIT 5",
    },
    Condition {
        number: 7,
        words: "OL_DELIVERY_D is null where O_CARRIER_ID is, and only there",
        columns: &["o_w_id", "o_d_id", "o_id", "ol_number"],
        query: "SELECT o_w_id, o_d_id, o_id, ol_number FROM orders JOIN order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id \
                WHERE (o_carrier_id IS NULL) <> (ol_delivery_d IS NULL) ORDER BY o_w_id, o_d_id, o_id LIMIT 5",
    },
    Condition {
        number: 8,
        words: "W_YTD = sum(H_AMOUNT)",
        columns: &["w_id", "w_ytd", "sum(h_amount)"],
        query: "SELECT w_id, w_ytd, total FROM warehouse LEFT JOIN \
                (SELECT h_w_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id) h ON h_w_id = w_id \
                WHERE total IS NULL OR w_ytd <> total ORDER BY w_id LIMIT 5",
    },
    Condition {
        number: 9,
        words: "D_YTD = sum(H_AMOUNT)",
        columns: &["d_w_id", "d_id", "d_ytd", "sum(h_amount)"],
        query: "SELECT d_w_id, d_id, d_ytd, total FROM district LEFT JOIN \
                (SELECT h_w_id, h_d_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id, h_d_id) h \
                ON h_w_id = d_w_id AND h_d_id = d_id WHERE total IS NULL OR d_ytd <> total \
                ORDER BY d_w_id, d_id LIMIT 5",
    },
    Condition {
        number: 10,
        words: "C_BALANCE = sum(OL_AMOUNT of what is delivered) - sum(H_AMOUNT)",
        columns: &["c_w_id", "c_d_id", "c_id", "c_balance", "delivered", "paid"],
        query: "SELECT c_w_id, c_d_id, c_id, c_balance, COALESCE(delivered, 0), COALESCE(paid, 0) FROM customer \
                LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders JOIN order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
                GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history \
                GROUP BY h_c_w_id, h_c_d_id, h_c_id) h ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id \
                WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0) ORDER BY c_w_id, c_d_id, c_id LIMIT 5",
    },
    Condition {
        number: 12,
        words: "C_BALANCE + C_YTD_PAYMENT = sum(OL_AMOUNT of what is delivered)",
        columns: &["c_w_id", "c_d_id", "c_id", "c_balance", "c_ytd_payment", "delivered"],
        query: "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, COALESCE(delivered, 0) FROM customer \
                LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders JOIN order_line \
                ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id WHERE ol_delivery_d IS NOT NULL \
                GROUP BY o_w_id, o_d_id, o_c_id) o ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id \
                WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0) ORDER BY c_w_id, c_d_id, c_id LIMIT 5",
    },
];

/// How far conditions go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The first four, which read each table of orders once.
    Required,
    /// All that hold after a load: those of each order and each customer too.
    All,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checked {
    /// Of what population.
    pub population: Population,
    /// Numbers of the conditions that hold.
    pub held: Vec<u32>,
    /// Conditions that do not.
    pub broken: Vec<OltpViolation>,
}

/// Checks the conditions one after the other; `each` is told the number of the one that comes.
///
/// # Errors
/// No connection, no population, a server that fails or takes too long, a stop.
pub fn check(
    connect: &Connect,
    depth: Depth,
    stop: &AtomicBool,
    each: &mut dyn FnMut(u32),
) -> Result<Checked, OltpError> {
    wait(async {
        let mut session = connected(connect, Manner::default()).await?;
        let (_, population) = mark::require(&mut session, connect).await?;
        let limit = Duration::from_secs(SECONDS + SECONDS_EACH * u64::from(population.warehouses));
        let mut checked = Checked { population, held: Vec::new(), broken: Vec::new() };
        let count = if depth == Depth::All { CONDITIONS.len() } else { REQUIRED };
        for condition in &CONDITIONS[..count] {
            each(condition.number);
            let failed = || OltpError::server(format!("condition {} cannot be checked", condition.number));
            let rows = bounded(session.query(condition.query), limit, stop).await?.map_err(failed())?;
            if rows.is_empty() {
                checked.held.push(condition.number);
            } else {
                let named = |row: &Vec<crate::value::Value>| {
                    let pairs = condition.columns.iter().zip(row);
                    pairs
                        .map(|(name, value)| format!("{name}={}", value.words()))
                        .collect::<Vec<_>>()
                        .join(" ")
                };
                checked.broken.push(OltpViolation {
                    condition: condition.number,
                    words: condition.words.into(),
                    rows: rows.iter().map(named).collect(),
                });
            }
        }
        Ok(checked)
    })
}

/// Waits within the limit, and no longer than until a stop is asked for.
async fn bounded<T>(
    future: impl Future<Output = Result<T, Fault>>,
    limit: Duration,
    stop: &AtomicBool,
) -> Result<Result<T, Fault>, OltpError> {
    let (mut future, begun) = (pin!(future), Instant::now());
    loop {
        match tokio::time::timeout(Duration::from_millis(100), &mut future).await {
            Ok(done) => return Ok(done),
            Err(_) if stop.load(Ordering::Relaxed) => return Err(OltpError::Stopped),
            Err(_) if begun.elapsed() > limit => return Ok(Err(no_answer(limit))),
            Err(_) => {}
        }
    }
}

//! A load of TPC-C's transactions on a database: what was asked for, and what came of it.
//!
//! Transactions after TPC-C's specification; not comparable with published TPC results.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use virtbench_units::LatencySummary;
use virtbench_workload::Rate;

use crate::application_study_plan::ApplianceSide;

/// One of the five transactions ([TPC-C 5.11], clause 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OltpKind {
    /// A customer orders 5 to 15 items.
    NewOrder,
    /// A customer pays.
    Payment,
    /// What a customer's last order is.
    OrderStatus,
    /// The oldest order of each district is delivered.
    Delivery,
    /// How many recently sold items are short.
    StockLevel,
}

impl OltpKind {
    /// All five, in the order of the specification.
    pub const ALL: [Self; 5] =
        [Self::NewOrder, Self::Payment, Self::OrderStatus, Self::Delivery, Self::StockLevel];

    /// Its place among [`Self::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// As records and tables name it.
    #[must_use]
    pub fn name(self) -> &'static str {
        ["new_order", "payment", "order_status", "delivery", "stock_level"][self.index()]
    }
}

/// Which database serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum DatabaseKind {
    /// PostgreSQL.
    PostgreSql,
    /// MariaDB.
    MariaDb,
}

/// How a user chooses the next transaction ([TPC-C 5.11], clause 5.2.4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OltpChoice {
    /// From a shuffled deck of cards, so that each user keeps the shares exactly.
    #[default]
    Deck,
    /// By chance, each time anew.
    Weights,
}

/// Shares of the five transactions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpMix {
    /// Share of each, in the order of [`OltpKind::ALL`]; only their ratios matter. In a deck, its cards.
    pub shares: [u32; 5],
    /// How the next one is chosen.
    pub choice: OltpChoice,
}

impl Default for OltpMix {
    fn default() -> Self {
        Self { shares: [45, 43, 4, 4, 4], choice: OltpChoice::Deck }
    }
}

/// How transactions are kept apart from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OltpIsolation {
    /// READ COMMITTED; rows that are changed are locked when they are read.
    #[default]
    ReadCommitted,
    /// REPEATABLE READ.
    RepeatableRead,
    /// SERIALIZABLE, as the specification asks of most transactions.
    Serializable,
}

/// A load, as it is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpPlan {
    /// Users; each has a connection.
    pub users: u32,
    /// Threads of the driver, over which the users are spread.
    pub threads: u32,
    /// Before measuring, in nanoseconds.
    pub ramp_up_ns: u64,
    /// Of measuring, in nanoseconds.
    pub time_ns: u64,
    /// Open loop: transactions arrive at this rate. A closed loop where there is none.
    pub rate: Option<Rate>,
    /// Shares of the transactions.
    pub mix: OltpMix,
    /// Keying and think times of clause 5.2.5.7, times this factor; none where there is none.
    pub think_factor: Option<f64>,
    /// Whether Delivery is put into a queue and run by connections of its own (clause 2.7.2), or by the user at once.
    pub deferred_delivery: bool,
    /// Isolation of the transactions.
    pub isolation: OltpIsolation,
    /// Whether statements are prepared once for each connection, or sent with their text each time, as a pooler wants it that gives
    /// each transaction another connection of the server.
    #[serde(default = "is_prepared")]
    pub prepared: bool,
    /// How often a transaction is tried again after a deadlock, a serialization failure or a lock wait that is too long.
    pub retries: u32,
    /// The longest that a transaction may take, in nanoseconds.
    pub timeout_ns: u64,
    /// Whether all conditions of consistency are checked afterwards, or the first four alone.
    pub check_all: bool,
    /// Seed of every random choice.
    pub seed: u64,
}

/// Before there was a choice.
fn is_prepared() -> bool {
    true
}

impl Default for OltpPlan {
    fn default() -> Self {
        Self {
            users: 8,
            threads: 1,
            ramp_up_ns: 5_000_000_000,
            time_ns: 30_000_000_000,
            rate: None,
            mix: OltpMix::default(),
            think_factor: None,
            deferred_delivery: true,
            isolation: OltpIsolation::default(),
            prepared: true,
            retries: 10,
            timeout_ns: 60_000_000_000,
            check_all: false,
            seed: 1,
        }
    }
}

/// What one of the five transactions did while measuring.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpTransactions {
    /// Transactions that ended as they should, those rolled back on purpose included.
    pub completed: u64,
    /// New-Orders that were rolled back because of an unused item, as the specification asks of 1 %.
    pub rolled_back: u64,
    /// Completed a second.
    pub per_second: f64,
    /// Response times with retries, in nanoseconds; in an open loop since the intended start, of deferred Deliveries from
    /// the queue to the end. Those unfinished count with the time until they ended or nobody waited any more. Null where none
    /// completed or was unfinished.
    pub latency_ns: Option<LatencySummary>,
    /// Response times of all: an HdrHistogram, compressed V2 in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// What 90 % must not exceed (clause 5.2.5.3; of deferred Deliveries 2.7.2), in nanoseconds.
    pub limit_ns: u64,
    /// Whether 90 % do not, of all that were due: those unfinished count with the time that they waited, those that failed as longer.
    /// Null where none was due.
    pub within_limit: Option<bool>,
    /// Tries that ended in a deadlock.
    pub deadlocks: u64,
    /// Tries that ended in a serialization failure.
    pub serialization_failures: u64,
    /// Tries that waited too long for a lock.
    pub lock_timeouts: u64,
    /// Tries beyond the first.
    pub retries: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Transactions that were due or in flight when measuring ended.
    #[serde(default)]
    pub unfinished: u64,
}

/// Deliveries that were put into a queue.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpDeferred {
    /// Connections that run them.
    pub connections: u32,
    /// Put into the queue while measuring.
    pub queued: u64,
    /// Orders delivered by those that completed while measuring.
    pub orders: u64,
    /// Districts without an order to deliver.
    pub skipped_districts: u64,
    /// The longest queue while measuring.
    pub longest_queue: u64,
    /// In the queue when measuring ended.
    pub left: u64,
}

/// How an open loop kept up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpOpenLoop {
    /// Transactions that were meant to start while measuring.
    pub offered: u64,
    /// Those that were due but not started at the end.
    pub backlog_end: u64,
    /// Whether the database could not keep up: the backlog at the end is larger than the users and than 1 % of what
    /// was offered.
    pub saturated: bool,
}

/// A second of the series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpSecond {
    /// Begin, in nanoseconds since measuring began.
    pub start_ns: u64,
    /// Length, in nanoseconds; the last may be shorter.
    pub length_ns: u64,
    /// Transactions completed.
    pub transactions: u64,
    /// New-Orders among them.
    pub new_orders: u64,
    /// 90th percentile of their response times, in the last second also of what was unfinished, in nanoseconds; null where there
    /// is none.
    pub p90_ns: Option<u64>,
}

/// A condition of consistency that a database breaks ([TPC-C 5.11], clause 3.3.2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpViolation {
    /// Its number in clause 3.3.2; zero where a row or a value is missing, or one is there that belongs to nothing.
    pub condition: u32,
    /// What should hold.
    pub words: String,
    /// Rows that break it, five at most, as `column=value` lists.
    pub rows: Vec<String>,
}

/// What a load of TPC-C's transactions did.
///
/// Transactions after TPC-C's specification; not comparable with published TPC results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpOutcome {
    /// Which database serves.
    pub database: DatabaseKind,
    /// What the server says of its version.
    pub server: String,
    /// The schema of the tables.
    #[serde(default)]
    pub schema: String,
    /// Warehouses of the population.
    pub warehouses: u32,
    /// Seed of the population.
    pub population_seed: u64,
    /// The load.
    pub plan: OltpPlan,
    /// How long was really measured, in nanoseconds.
    pub elapsed_ns: u64,
    /// Whether the run was stopped before its time.
    pub interrupted: bool,
    /// What ended the run before its time, such as a server that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// All five together a second; Deliveries count when they are run.
    pub transactions_per_second: f64,
    /// New-Orders that were committed a minute.
    pub new_orders_per_minute: f64,
    /// Each of the five, by its name.
    pub transactions: BTreeMap<String, OltpTransactions>,
    /// Deferred Deliveries; absent where users run them at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deferred: Option<OltpDeferred>,
    /// What only an open loop has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OltpOpenLoop>,
    /// Failed transactions, retries not counted, by what the server said.
    pub error_kinds: BTreeMap<String, u64>,
    /// The series, a second each.
    pub series: Vec<OltpSecond>,
    /// CPU time of the driver's threads while measuring, in nanoseconds (user, system).
    pub own_cpu_ns: [u64; 2],
    /// CPU time of the driver for each completed transaction, in nanoseconds; null where none completed.
    pub own_cpu_per_transaction_ns: Option<f64>,
    /// Of the driver's threads, how busy the busiest was, in percent.
    pub busiest_thread_percent: f64,
    /// Of the driver's threads, for how much of the time the one that waited longest had no processor though it was ready, in
    /// percent; null where the kernel does not count it.
    #[serde(default)]
    pub waited_percent: Option<f64>,
    /// For how much of the time the quota of its control group held the driver back, in percent; null where that cannot be seen.
    #[serde(default)]
    pub throttled_percent: Option<f64>,
    /// Intended starts that began more than 10 ms late though a user was free.
    #[serde(default)]
    pub late_starts: u64,
    /// Whether the driver is the limit, not the database: its busiest thread was busy for more than 90 % of the time, it was held back
    /// for more than 5 %, or more than 1 % of what was offered began late.
    pub driver_is_limit: bool,
    /// Conditions of clause 3.3.2 that were checked afterwards and hold.
    pub conditions_held: Vec<u32>,
    /// Conditions that were checked afterwards and do not hold: the load has no result then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions_broken: Vec<OltpViolation>,
    /// Why the conditions could not be checked; absent where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions_unchecked: Option<String>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl OltpOutcome {
    /// Transactions that failed while measuring.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.transactions.values().map(|kind| kind.failed).sum()
    }
}

/// How many users there are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OltpUsers {
    /// Raised until the processors are saturated or throughput stops growing.
    Auto {
        /// The most that are tried.
        most: u32,
    },
    /// These, one after the other.
    Given(Vec<u32>),
}

/// What a study of a database set out to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OltpStudyPlan {
    /// Which database.
    pub database: DatabaseKind,
    /// Digest of the appliance's root, in hexadecimal digits.
    pub root: String,
    /// Warehouses of the population.
    pub warehouses: u32,
    /// Seed of the population.
    pub population_seed: u64,
    /// The sides, the reference first.
    pub sides: Vec<ApplianceSide>,
    /// Users.
    pub users: OltpUsers,
    /// Repetitions at saturation and at equal users. Each has a boot of its own.
    pub repetitions: u32,
    /// Before each measurement, in nanoseconds.
    pub ramp_up_ns: u64,
    /// Of each measurement in the search for saturation, in nanoseconds.
    pub search_ns: u64,
    /// Of each other measurement, in nanoseconds.
    pub time_ns: u64,
    /// Shares of the transactions.
    pub mix: OltpMix,
    /// Keying and think times, times this factor; none where there is none.
    pub think_factor: Option<f64>,
    /// Seed of every random choice of the load.
    pub seed: u64,
    /// What executes the VMs' instructions: `auto`, `kvm` or `tcg`.
    pub accelerator: String,
    /// How clients reach a VM: `user` or `tap`.
    pub network: String,
}

impl OltpStudyPlan {}

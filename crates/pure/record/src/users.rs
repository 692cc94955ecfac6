//! A load of users on a service, such as a web server, a store of keys and values or a mail server: what was asked for, and
//! what came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use virtbench_units::LatencySummary;
use virtbench_workload::Rate;

/// What users ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UsersService {
    /// Pages of a web server, over HTTP.
    Web,
    /// Keys and values of a store, over Redis's protocol.
    KeyValue,
    /// Mail that is sent over SMTP and read over IMAP.
    Mail,
}

/// A load, as it is asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersPlan {
    /// What users ask for.
    pub service: UsersService,
    /// Users; each has a connection.
    pub users: u32,
    /// Threads of the driver, over which the users are spread.
    pub threads: u32,
    /// Before measuring, in nanoseconds.
    pub ramp_up_ns: u64,
    /// Of measuring, in nanoseconds.
    pub time_ns: u64,
    /// Open loop: operations arrive at this rate, of all users together. A closed loop where there is none.
    pub rate: Option<Rate>,
    /// Mean time that a user thinks between two operations, in nanoseconds, drawn from an exponential distribution; none where
    /// users do not think.
    pub think_ns: Option<u64>,
    /// The longest that an operation may take, in nanoseconds.
    pub timeout_ns: u64,
    /// Seed of every random choice.
    pub seed: u64,
}

/// What one kind of operation did while measuring.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersOperation {
    /// Operations that ended as they should.
    pub completed: u64,
    /// Completed a second.
    pub per_second: f64,
    /// Operations that failed.
    pub failed: u64,
    /// Those among them that took too long: they stand in the response times with the time until they were given up.
    #[serde(default)]
    pub timed_out: u64,
    /// Operations that were due or in flight when measuring ended: they stand in the response times with what they took until
    /// they ended, or until nobody waited any more.
    #[serde(default)]
    pub unfinished: u64,
    /// Response times, in nanoseconds; in an open loop since the intended start. Null where none completed, timed out or was
    /// unfinished.
    pub latency_ns: Option<LatencySummary>,
    /// Response times of all: an HdrHistogram, compressed V2 in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// A second of the series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersSecond {
    /// Begin, in nanoseconds since measuring began.
    pub start_ns: u64,
    /// Length, in nanoseconds; the last may be shorter.
    pub length_ns: u64,
    /// Operations completed.
    pub completed: u64,
    /// Operations failed.
    pub failed: u64,
    /// 95th percentile of their response times, in the last second also of what was unfinished, in nanoseconds; null where there
    /// is none.
    pub p95_ns: Option<u64>,
}

/// How an open loop kept up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersOpenLoop {
    /// Operations that were meant to start while measuring.
    pub offered: u64,
    /// Those that were due but not started at the end.
    pub backlog_end: u64,
    /// Whether the service could not keep up: the backlog at the end is larger than the users and than 1 % of what was offered.
    pub saturated: bool,
}

/// What the users did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsersOutcome {
    /// The load.
    pub plan: UsersPlan,
    /// Where the service is.
    pub target: String,
    /// What was asked for that only this service has, such as the paths of pages, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// What the server says of itself, where it does.
    pub server: Option<String>,
    /// When users began, before the ramp-up, in nanoseconds of the monotonic clock of the machine that they ran on.
    pub begin_ns: u64,
    /// How long was really measured, in nanoseconds.
    pub elapsed_ns: u64,
    /// Whether the run was stopped before its time.
    pub interrupted: bool,
    /// What ended the run before its time, such as a server that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// All operations together.
    pub all: UsersOperation,
    /// Each kind of operation, by its name.
    pub operations: BTreeMap<String, UsersOperation>,
    /// What only an open loop has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<UsersOpenLoop>,
    /// Failed operations by what went wrong.
    pub error_kinds: BTreeMap<String, u64>,
    /// The series, a second each.
    pub series: Vec<UsersSecond>,
    /// CPU time of the driver's threads while measuring, in nanoseconds (user, system).
    pub own_cpu_ns: [u64; 2],
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
    /// Whether the driver is the limit, not the service: its busiest thread was busy for more than 90 % of the time, it was held back
    /// for more than 5 %, or more than 1 % of what was offered began late.
    pub driver_is_limit: bool,
    /// What a reader should know.
    pub notes: Vec<String>,
}

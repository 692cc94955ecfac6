//! From counts to what is reported.

use std::collections::BTreeMap;

use virtbench_record::{UsersOpenLoop, UsersOperation, UsersOutcome, UsersSecond};
use virtbench_units::Responses;

use crate::driver::Driven;
use crate::driver_use::{DriverUse, ThreadUse};
use crate::error::UsersError;
use crate::shared::Shared;
use crate::tally::Tally;
use crate::unfinished::unfinished_words;

/// What is known of the service.
pub(crate) struct Facts {
    /// Names of the kinds of operation.
    pub(crate) kinds: Vec<String>,
    /// What the server says of itself.
    pub(crate) server: Option<String>,
    /// When users were to begin, in nanoseconds of the monotonic clock.
    pub(crate) begin_at_ns: Option<u64>,
}

/// Whether so many due starts that nobody took mean that a service does not keep up: more than the users, and than 1 % of what
/// was offered.
#[must_use]
pub fn is_saturated(backlog: u64, users: u32, offered: u64) -> bool {
    backlog > u64::from(users) && backlog.saturating_mul(100) > offered
}

/// Puts together what the threads counted.
///
/// # Errors
/// A load that ended before anything was measured.
pub(crate) fn outcome(
    shared: &Shared<'_>,
    facts: Facts,
    driven: &[Driven],
    series: Vec<UsersSecond>,
) -> Result<UsersOutcome, UsersError> {
    let (plan, elapsed_ns, fatal) = (shared.plan, shared.course.measured_ns(), shared.course.fatal());
    if elapsed_ns == 0 {
        return Err(fatal.map_or(UsersError::Stopped, UsersError::EndedEarly));
    }
    let mut tally = Tally::new(facts.kinds.len());
    shared.tallies().for_each(|one| tally.merge(&one));
    let mut all = Responses::new();
    tally.kinds.iter().for_each(|kind| all.merge(kind));
    let kinds = facts.kinds.into_iter().zip(&tally.kinds);
    let operations: BTreeMap<String, UsersOperation> =
        kinds.map(|(name, kind)| (name, operation(kind, elapsed_ns))).collect();
    let used: Vec<ThreadUse> = driven.iter().map(|one| one.used).collect();
    let driver = DriverUse::of_threads(&used, driven.iter().map(|one| one.offered).sum());
    let begin_ns = shared.course.begin_ns().unwrap_or(0);
    let mut outcome = UsersOutcome {
        plan: plan.clone(),
        target: String::new(),
        details: BTreeMap::new(),
        server: facts.server,
        begin_ns,
        elapsed_ns,
        interrupted: elapsed_ns < plan.time_ns,
        ended_by: fatal.map(|fault| fault.words),
        all: operation(&all, elapsed_ns),
        operations,
        open_loop: plan.rate.map(|_| open_loop(plan.users, driven)),
        error_kinds: tally.errors.clone(),
        series,
        own_cpu_ns: driver.cpu_ns,
        busiest_thread_percent: driver.busiest_percent,
        waited_percent: driver.waited_percent,
        throttled_percent: driver.throttled_percent,
        late_starts: driver.late_starts,
        driver_is_limit: driver.is_limit,
        notes: Vec::new(),
    };
    outcome.notes = remarks(&outcome, &all, &driver, facts.begin_at_ns);
    Ok(outcome)
}

fn operation(responses: &Responses, elapsed_ns: u64) -> UsersOperation {
    let latency_ns = responses.summary();
    UsersOperation {
        completed: responses.completed(),
        per_second: responses.completed() as f64 * 1e9 / elapsed_ns as f64,
        failed: responses.failed(),
        timed_out: responses.given_up(),
        unfinished: responses.unfinished(),
        latency_ns,
        histogram: latency_ns.and_then(|_| responses.encode_histogram().ok()),
    }
}

fn open_loop(users: u32, driven: &[Driven]) -> UsersOpenLoop {
    let offered = driven.iter().map(|one| one.offered).sum();
    let backlog_end = driven.iter().map(|one| one.backlog).sum();
    UsersOpenLoop { offered, backlog_end, saturated: is_saturated(backlog_end, users, offered) }
}

/// Users who begin later than they were to are reported from here on, in nanoseconds: threads look every five milliseconds.
const LATE_NS: u64 = 20_000_000;

fn remarks(
    outcome: &UsersOutcome,
    all: &Responses,
    driver: &DriverUse,
    begin_at_ns: Option<u64>,
) -> Vec<String> {
    let mut remarks = driver.remarks();
    if outcome.open_loop.as_ref().is_some_and(|open| open.saturated) {
        remarks.push("the service did not keep up with the rate".into());
    }
    remarks.extend(unfinished_words(all, outcome.plan.timeout_ns, "operations"));
    let late_ns = begin_at_ns.map_or(0, |at_ns| outcome.begin_ns.saturating_sub(at_ns));
    if late_ns > LATE_NS {
        remarks.push(format!("users began {:.3} s after the agreed moment", late_ns as f64 / 1e9));
    }
    remarks
}

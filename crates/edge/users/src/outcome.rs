//! From counts to what is reported.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use virtbench_record::{UsersOpenLoop, UsersOperation, UsersOutcome, UsersPlan, UsersSecond};
use virtbench_units::{Responses, format_duration_ns};

use crate::driver::{Driven, drive};
use crate::service::{Fault, FaultKind, Service, UsersError};
use crate::shared::Shared;
use crate::tally::{LoadEvent, Tally, second, series};
use crate::threads::{DriverUse, Start, ThreadUse, ThreadsError, run_threads, runtime, unless};

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

/// An operation that had waited for less is one of those that are always under way, in nanoseconds.
const USUAL_NS: u64 = 1_000_000_000;

/// A remark where one of them had waited for long beside the longest that an operation may take.
#[must_use]
pub fn unfinished_words(responses: &Responses, timeout_ns: u64, what: &str) -> Option<String> {
    let oldest_ns = responses.oldest_ns();
    (oldest_ns > timeout_ns.min(USUAL_NS)).then(|| {
        let oldest = format_duration_ns(oldest_ns / 1_000_000 * 1_000_000);
        format!(
            "{} {what} had not ended when measuring did, the oldest after {oldest}; they count with the time that they waited",
            responses.unfinished()
        )
    })
}

/// The longest that preparing the service may take.
const PREPARE: Duration = Duration::from_secs(120);

/// Where a load goes, and when it begins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aim {
    /// Where the service is, as people write it.
    pub target: String,
    /// What is particular to the service, by name, for the record.
    pub details: BTreeMap<String, String>,
    /// When users begin, in nanoseconds of the monotonic clock; as soon as they are connected where there is none, or where that
    /// is later.
    pub begin_at_ns: Option<u64>,
}

/// Applies the load. `each` is told how it goes. What ends it before its time stands in the outcome, and so does a stop.
///
/// # Errors
/// A plan that makes no sense, a service that cannot be used, a load that ended before anything was measured.
pub fn run<S: Service>(
    service: &S,
    aim: &Aim,
    plan: &UsersPlan,
    stop: &AtomicBool,
    each: &mut dyn FnMut(LoadEvent<'_, UsersSecond>),
) -> Result<UsersOutcome, UsersError> {
    check_plan(plan)?;
    let (login, limit) = (service.login(), Duration::from_nanos(plan.timeout_ns));
    let unusable = |fault| UsersError::Service { target: aim.target.clone(), fault, login };
    let late = || Fault::new(FaultKind::Timeout, format!("not prepared within {} s", PREPARE.as_secs()));
    let prepared = runtime()?.block_on(async {
        unless(|| stop.load(Ordering::Relaxed), timeout(PREPARE, service.prepare(limit))).await
    });
    let prepared = prepared.ok_or(UsersError::Stopped)?;
    let server = prepared.unwrap_or_else(|_| Err(late())).map_err(unusable)?;
    let facts = Facts { kinds: service.kinds(), server, begin_at_ns: aim.begin_at_ns };
    let shared = Shared::new(plan, facts.kinds.len());
    let start = Start::of_users(plan.users, plan.threads, aim.begin_at_ns);
    let work = |thread, ready: &_| drive(service, &shared, thread, ready);
    let done = run_threads(&shared.course, start, stop, work, |have_ended| {
        let take = |before| shared.tallies().map(|mut tally| tally.seconds.take(before)).collect();
        series(&shared.course, stop, have_ended, take, second, each)
    });
    let (driven, series) = done.map_err(|error| match error {
        ThreadsError::Connect(fault) => unusable(fault),
        ThreadsError::TooLong(limit) => UsersError::TooLong(limit),
        ThreadsError::Stopped => UsersError::Stopped,
        ThreadsError::Driver(error) => UsersError::Driver(error),
    })?;
    let outcome = outcome(&shared, facts, &driven, series)?;
    Ok(UsersOutcome { target: aim.target.clone(), details: aim.details.clone(), ..outcome })
}

fn check_plan(plan: &UsersPlan) -> Result<(), UsersError> {
    let refused = |words: &str| Err(UsersError::Plan(words.into()));
    match plan {
        UsersPlan { users: 0, .. } | UsersPlan { threads: 0, .. } => {
            refused("a load has one user and one thread at least")
        }
        UsersPlan { time_ns: 0, .. } => refused("a load takes some time"),
        UsersPlan { timeout_ns: 0, .. } => refused("an operation may take some time"),
        UsersPlan { users, threads, .. } if threads > users => {
            refused("a load has no more threads than users")
        }
        UsersPlan { rate: Some(_), think_ns: Some(_), .. } => {
            refused("an open loop has no think times: its rate says when operations begin")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use virtbench_units::{Ending, Window};

    use super::*;

    #[test]
    fn what_is_always_under_way_needs_no_remark() {
        let window = Window { start_ns: 0, end_ns: 10_000_000_000 };
        let mut responses = Responses::new();
        responses.ended(window, 9_500_000_000, 10_100_000_000, Ending::Completed);
        assert_eq!(unfinished_words(&responses, 60_000_000_000, "operations"), None);
        assert!(unfinished_words(&responses, 400_000_000, "operations").is_some());
        responses.never_begun(window, 7_500_000_000);
        let said = unfinished_words(&responses, 60_000_000_000, "operations").unwrap();
        assert!(said.starts_with("2 operations had not ended") && said.contains("after 2s 500ms"), "{said}");
    }
}

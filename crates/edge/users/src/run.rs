//! A load from its plan to its outcome.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::timeout;
use virtbench_record::{UsersOutcome, UsersPlan, UsersSecond};

use crate::driver::drive;
use crate::error::UsersError;
use crate::fault::{Fault, FaultKind};
use crate::outcome::{Facts, outcome};
use crate::seconds::{LoadEvent, series};
use crate::service::Service;
use crate::shared::Shared;
use crate::tally::second;
use crate::thread_use::{runtime, unless};
use crate::threads::{Start, ThreadsError, run_threads};

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

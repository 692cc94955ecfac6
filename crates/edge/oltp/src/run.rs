//! A load from its plan to its outcome.

use std::sync::atomic::AtomicBool;

use virtbench_record::{DatabaseKind, OltpOutcome, OltpPlan, OltpSecond};
use virtbench_users::{Start, ThreadsError, run_threads, series};

use crate::address::Connect;
use crate::blocking::{connected, wait};
use crate::check::{Checked, Depth, check};
use crate::driver::{all_deliverers, drive};
use crate::error::OltpError;
use crate::fault::no_answer;
use crate::manner::Manner;
use crate::mark;
use crate::mix;
use crate::outcome::{Facts, outcome};
use crate::shared::Shared;
use crate::tally::second;

/// Connections that PostgreSQL keeps for administrators unless it is told otherwise.
const RESERVED: u32 = 3;

/// What a caller is told meanwhile.
pub type Event<'a> = virtbench_users::Event<'a, OltpSecond>;

/// Applies the load and checks the conditions of consistency afterwards. `each` is told how it goes.
///
/// What ends the load before its time, such as a server that is gone, stands in the outcome; nothing is checked then. So does
/// a stop, after which the conditions are checked all the same.
///
/// # Errors
/// A plan that makes no sense, no connection, no population, too many users, conditions that do not hold.
pub fn run(
    connect: &Connect,
    plan: &OltpPlan,
    stop: &AtomicBool,
    each: &mut dyn FnMut(Event<'_>),
) -> Result<OltpOutcome, OltpError> {
    run_from(connect, plan, None, stop, each)
}

/// The same, where users begin at a moment of the monotonic clock, in nanoseconds, so that several loads begin at one. All are
/// connected before; where that took longer, they begin at once.
///
/// # Errors
/// As [`run`].
pub fn run_from(
    connect: &Connect,
    plan: &OltpPlan,
    begin_at_ns: Option<u64>,
    stop: &AtomicBool,
    each: &mut dyn FnMut(Event<'_>),
) -> Result<OltpOutcome, OltpError> {
    check_plan(plan)?;
    let facts = wait(look(connect, plan))?;
    let shared = Shared::new(plan, connect, (facts.schema.clone(), facts.population));
    let start = Start::of_users(plan.users, plan.threads, begin_at_ns);
    let work = |thread, ready: &_| drive(&shared, thread, ready);
    let done = run_threads(&shared.course, start, stop, work, |have_ended| {
        let take = |before| shared.tallies().map(|mut tally| tally.seconds.take(before)).collect();
        series(&shared.course, stop, have_ended, take, second, each)
    });
    let (used, series) = done.map_err(|error| match error {
        ThreadsError::Connect(error) => error,
        ThreadsError::TooLong(limit) => OltpError::server("users cannot be connected")(no_answer(limit)),
        ThreadsError::Stopped => OltpError::Stopped,
        ThreadsError::Driver(error) => OltpError::Driver(error),
    })?;
    let mut outcome = outcome(&shared, &facts, &used, series)?;
    if outcome.ended_by.is_some() {
        outcome.notes.push("the conditions of consistency were not checked".into());
        return Ok(outcome);
    }
    let depth = if plan.check_all { Depth::All } else { Depth::Required };
    let Checked { held, broken, .. } = check(connect, depth, &AtomicBool::new(false), &mut |_| {})?;
    if !broken.is_empty() {
        return Err(OltpError::Inconsistent(broken));
    }
    outcome.conditions_held = held;
    Ok(outcome)
}

fn check_plan(plan: &OltpPlan) -> Result<(), OltpError> {
    let refused = |words: &str| Err(OltpError::Plan(words.into()));
    match plan {
        OltpPlan { users: 0, .. } => return refused("a load has one user at least"),
        OltpPlan { threads: 0, .. } => return refused("a load has one thread at least"),
        OltpPlan { time_ns: 0, .. } => return refused("a load takes some time"),
        OltpPlan { users, threads, .. } if threads > users => {
            return refused("a load has no more threads than users");
        }
        OltpPlan { rate: Some(_), think_factor: Some(_), .. } => {
            return refused("an open loop has no think times: its rate says when transactions begin");
        }
        _ => {}
    }
    mix::check(plan.mix).map_err(OltpError::Plan)
}

/// What is to be known of the server.
async fn look(connect: &Connect, plan: &OltpPlan) -> Result<Facts, OltpError> {
    let mut session = connected(connect, Manner::default()).await?;
    let (schema, population) = mark::require(&mut session, connect).await?;
    let failed = || OltpError::server("the server cannot be asked what it is");
    let (version, most) = match connect.address.kind {
        DatabaseKind::PostgreSql => {
            ("SHOW server_version", "SELECT CAST(current_setting('max_connections') AS int)")
        }
        DatabaseKind::MariaDb => ("SELECT VERSION()", "SELECT @@max_connections"),
    };
    let server = session.query(version).await.map_err(failed())?;
    let server = server.first().and_then(|row| row.first()).map_or_else(String::new, |value| value.words());
    let most = session.query(most).await.map_err(failed())?;
    let most = most.first().and_then(|row| row.first()).map_or(u32::MAX, |value| value.key());
    let needed = plan.users.saturating_add(all_deliverers(plan));
    let reserved = if connect.address.kind == DatabaseKind::PostgreSql { RESERVED } else { 0 };
    if needed > most.saturating_sub(reserved) {
        return Err(OltpError::TooManyUsers { users: plan.users, needed, most });
    }
    Ok(Facts { server, schema, population })
}

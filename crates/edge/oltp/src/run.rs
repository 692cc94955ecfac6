//! A load from its plan to its outcome.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_record::{DatabaseKind, OltpOutcome, OltpPlan, OltpSecond};
use virtbench_users::{Start, ThreadsError, run_threads, series};

use crate::address::{Connect, Endpoint, Manner};
use crate::check::{Checked, Depth, check_within};
use crate::driver::{all_deliverers, drive};
use crate::error::{OltpError, no_answer};
use crate::mark;
use crate::mark::refuse_standby;
use crate::mix;
use crate::outcome::{Facts, outcome};
use crate::session::{bounded, connected, wait};
use crate::statement::Value;
use crate::tally::{Shared, second};

/// Connections that PostgreSQL keeps for administrators unless it is told otherwise.
const RESERVED: u32 = 3;
/// The longest that a look at the server may take.
const LOOK: (Duration, &str) = (Duration::from_secs(60), "the server cannot be asked what it is");
/// The longest that conditions are checked after a stop.
const AFTER_STOP: Duration = Duration::from_secs(10);

/// What a caller is told meanwhile.
pub type LoadEvent<'a> = virtbench_users::LoadEvent<'a, OltpSecond>;

/// Applies the load and checks the conditions of consistency afterwards. `each` is told how it goes.
///
/// # Errors
/// As [`run_from`].
pub fn run(
    connect: &Connect,
    plan: &OltpPlan,
    stop: &AtomicBool,
    each: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<OltpOutcome, OltpError> {
    let mut outcome = run_from(connect, plan, None, stop, each)?;
    settle(connect, &mut outcome, stop, &mut |_| {});
    Ok(outcome)
}

/// Applies the load and checks nothing. Users begin at a moment of the monotonic clock, in nanoseconds, where there is one, so that
/// several loads begin at one. All are connected before; where that took longer, they begin at once.
///
/// What ends the load before its time, such as a server that is gone, stands in the outcome. So does a stop.
///
/// # Errors
/// A plan that makes no sense, no connection, no population, too many users, a load that ended before anything was measured.
pub fn run_from(
    connect: &Connect,
    plan: &OltpPlan,
    begin_at_ns: Option<u64>,
    stop: &AtomicBool,
    each: &mut dyn FnMut(LoadEvent<'_>),
) -> Result<OltpOutcome, OltpError> {
    check_plan(plan)?;
    let facts = wait(bounded(LOOK, stop, look(connect, plan)))?;
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
    outcome(&shared, &facts, &used, series)
}

/// Checks the conditions of consistency after a load, and writes into its outcome which hold, which do not, or why they were not
/// checked. What was measured stays whatever comes of that. After a load that was stopped they are checked as far as a short time goes.
/// `each` is told the number of the one that comes.
pub fn settle(connect: &Connect, outcome: &mut OltpOutcome, stop: &AtomicBool, each: &mut dyn FnMut(u32)) {
    if outcome.ended_by.is_some() {
        outcome.conditions_unchecked = Some("the load ended before its time".into());
        return;
    }
    let depth = if outcome.plan.check_all { Depth::All } else { Depth::Required };
    let (never, was_stopped) = (AtomicBool::new(false), outcome.interrupted);
    let (stop, limit) = if was_stopped { (&never, Some(AFTER_STOP)) } else { (stop, None) };
    match check_within(connect, depth, limit, stop, each) {
        Ok(Checked { held, broken, .. }) => {
            outcome.conditions_held = held;
            outcome.conditions_broken = broken;
        }
        Err(OltpError::Stopped) => outcome.conditions_unchecked = Some("stopped".into()),
        Err(error) => outcome.conditions_unchecked = Some(error.to_string()),
    }
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
    let kind = connect.address.kind;
    let (version, most) = match kind {
        DatabaseKind::PostgreSql => (
            "SHOW server_version",
            "SELECT CAST(current_setting('max_connections') AS int), CAST(current_setting('port') AS int)",
        ),
        DatabaseKind::MariaDb => ("SELECT VERSION()", "SELECT @@max_connections, @@port"),
    };
    let server = session.query(version).await.map_err(failed())?;
    let server = server.first().and_then(|row| row.first()).map_or_else(String::new, |value| value.words());
    let rows = session.query(most).await.map_err(failed())?;
    let of = |place: usize| rows.first().and_then(|row| row.get(place)).map(Value::key);
    refuse_standby(&mut session, &connect.address).await?;
    let (Endpoint::Tcp(_, port) | Endpoint::Unix(_, port)) = &connect.address.endpoint;
    // Behind another port stands a pooler, or something else that shares the server's connections out.
    let is_direct = plan.prepared && (kind == DatabaseKind::MariaDb || of(1) == Some(u32::from(*port)));
    let most = of(0).filter(|_| is_direct).unwrap_or(u32::MAX);
    let needed = plan.users.saturating_add(all_deliverers(plan));
    let reserved = if kind == DatabaseKind::PostgreSql { RESERVED } else { 0 };
    if needed > most.saturating_sub(reserved) {
        return Err(OltpError::TooManyUsers { users: plan.users, needed, most });
    }
    Ok(Facts { server, schema, population })
}

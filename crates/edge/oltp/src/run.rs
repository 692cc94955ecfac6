//! A load from its plan to its outcome.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_engine::monotonic_ns;
use virtbench_record::{DatabaseKind, OltpIsolation, OltpOutcome, OltpPlan, OltpSecond};

use crate::address::Connect;
use crate::blocking::{connected, wait};
use crate::check::{Checked, Depth, check};
use crate::driver::{Used, all_deliverers, drive};
use crate::error::OltpError;
use crate::fault::Fault;
use crate::mark;
use crate::mix;
use crate::outcome::{Facts, outcome};
use crate::population::Population;
use crate::shared::Shared;
use crate::tally::{Second, second};

/// How often the series is looked at.
const LOOK_NS: u64 = 50_000_000;
const LOOK: Duration = Duration::from_nanos(LOOK_NS);
/// The longest that connecting may take, and as much again for each user, in milliseconds.
const CONNECT_MS: u64 = 30_000;
const CONNECT_MS_EACH: u64 = 1_000;
/// Connections that PostgreSQL keeps for administrators unless it is told otherwise.
const RESERVED: u32 = 3;

/// What a caller is told meanwhile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Event<'a> {
    /// Users work; told several times a second.
    Running,
    /// A second of measuring is over.
    Second(&'a OltpSecond),
}

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
    let shared = Shared::new(plan, connect, facts.population);
    let (used, series) = thread::scope(|scope| {
        let (tell, ready) = mpsc::channel();
        let threads: Vec<_> = (0..plan.threads)
            .map(|number| {
                let (shared, tell) = (&shared, tell.clone());
                scope.spawn(move || drive(shared, number, &tell))
            })
            .collect();
        drop(tell);
        let begun = all_ready(plan, &ready, stop)
            .and_then(|()| wait_until(begin_at_ns, stop))
            .inspect_err(|_| shared.cancel());
        let series = begun.map(|()| {
            shared.begin(monotonic_ns());
            follow(&shared, stop, each)
        });
        let used: Result<Vec<Used>, OltpError> = threads
            .into_iter()
            .map(|thread| match thread.join() {
                Ok(used) => Ok(used?),
                Err(panic) => std::panic::resume_unwind(panic),
            })
            .collect();
        Ok::<_, OltpError>((used, series?))
    })?;
    let used = used?;
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
    let mut session = connected(connect, OltpIsolation::default()).await?;
    let population: Population = mark::require(&mut session, &connect.address).await?;
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
    Ok(Facts { server, population })
}

/// Waits until every thread has its connections.
fn all_ready(
    plan: &OltpPlan,
    ready: &Receiver<Result<(), OltpError>>,
    stop: &AtomicBool,
) -> Result<(), OltpError> {
    let limit = Duration::from_millis(CONNECT_MS + CONNECT_MS_EACH * u64::from(plan.users));
    let (begun, mut waiting) = (Instant::now(), plan.threads);
    while waiting > 0 {
        match ready.recv_timeout(LOOK) {
            Ok(connected) => {
                connected?;
                waiting -= 1;
            }
            Err(RecvTimeoutError::Timeout) if stop.load(Ordering::Relaxed) => return Err(OltpError::Stopped),
            Err(RecvTimeoutError::Timeout) if begun.elapsed() > limit => {
                return Err(OltpError::server("users cannot be connected")(Fault::timeout(limit.as_secs())));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    Ok(())
}

/// Waits for a moment of the monotonic clock.
fn wait_until(begin_at_ns: Option<u64>, stop: &AtomicBool) -> Result<(), OltpError> {
    loop {
        let left = Duration::from_nanos(begin_at_ns.unwrap_or(0).saturating_sub(monotonic_ns()));
        if left.is_zero() {
            return Ok(());
        }
        if stop.load(Ordering::Relaxed) {
            return Err(OltpError::Stopped);
        }
        thread::sleep(left.min(LOOK));
    }
}

/// Collects the series until measuring has ended.
fn follow(shared: &Shared<'_>, stop: &AtomicBool, each: &mut dyn FnMut(Event<'_>)) -> Vec<OltpSecond> {
    let mut series = Vec::new();
    loop {
        thread::sleep(LOOK);
        each(Event::Running);
        if stop.load(Ordering::Relaxed) {
            shared.end_now();
        }
        let window = shared.window();
        let until_ns = monotonic_ns().min(window.end_ns);
        // A transaction that has just ended is counted within a look.
        let settled_ns = monotonic_ns().saturating_sub(window.start_ns + LOOK_NS);
        let whole =
            (settled_ns / 1_000_000_000).min(until_ns.saturating_sub(window.start_ns) / 1_000_000_000);
        take(shared, &mut series, whole, 1_000_000_000, each);
        if shared.has_ended() {
            // Those that end at the last moment are counted by now.
            thread::sleep(LOOK);
            let length_ns = window.end_ns.saturating_sub(window.start_ns);
            take(shared, &mut series, length_ns / 1_000_000_000, 1_000_000_000, each);
            if !length_ns.is_multiple_of(1_000_000_000) && window.end_ns > window.start_ns {
                take(shared, &mut series, length_ns / 1_000_000_000 + 1, length_ns % 1_000_000_000, each);
            }
            return series;
        }
    }
}

/// Adds the seconds before number `before` to the series.
fn take(
    shared: &Shared<'_>,
    series: &mut Vec<OltpSecond>,
    before: u64,
    length_ns: u64,
    each: &mut dyn FnMut(Event<'_>),
) {
    let first = series.len() as u64;
    if before <= first {
        return;
    }
    let mut parts: Vec<BTreeMap<u64, Second>> =
        shared.tallies().map(|mut tally| tally.take_seconds(before)).collect();
    for number in first..before {
        let of_threads = parts.iter_mut().filter_map(|seconds| seconds.remove(&number));
        let second = second(number, length_ns, of_threads);
        each(Event::Second(&second));
        series.push(second);
    }
}

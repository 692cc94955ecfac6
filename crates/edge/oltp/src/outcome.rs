//! From counts to what is reported.

use std::collections::BTreeMap;

use virtbench_record::{OltpDeferred, OltpKind, OltpOpenLoop, OltpOutcome, OltpSecond, OltpTransactions};
use virtbench_units::Responses;
use virtbench_users::{DriverUse, ThreadUse, is_saturated, unfinished_words};

use crate::driver::{Used, all_deliverers};
use crate::error::{OltpError, with_remedy};
use crate::mix::{DEFERRED_LIMIT_NS, limit_ns};
use crate::population::Population;
use crate::schema::Schema;
use crate::tally::{OfKind, Shared, Tally};
use crate::tls::TlsMode;

/// Said of every outcome.
pub const DISCLAIMER: &str =
    "transactions after TPC-C's specification; not comparable with published TPC results";

/// What is known before a load begins.
#[derive(Debug, Clone)]
pub struct Facts {
    /// What the server says of its version.
    pub server: String,
    /// Where it is.
    pub schema: Schema,
    /// Which population.
    pub population: Population,
}

/// Puts together what the threads counted.
///
/// # Errors
/// A server that failed before anything was measured.
pub fn outcome(
    shared: &Shared<'_>,
    facts: &Facts,
    used: &[Used],
    series: Vec<OltpSecond>,
) -> Result<OltpOutcome, OltpError> {
    let (plan, elapsed_ns, fatal) = (shared.plan, shared.course.measured_ns(), shared.course.fatal());
    if elapsed_ns == 0 {
        return Err(
            fatal.map_or(OltpError::Stopped, OltpError::server("the load ended before it was measured"))
        );
    }
    let mut tally = Tally::default();
    shared.tallies().for_each(|one| tally.merge(&one));
    let mut all = Responses::new();
    tally.kinds.iter().for_each(|kind| all.merge(&kind.responses));
    let seconds = elapsed_ns as f64 / 1e9;
    let is_deferred = all_deliverers(plan) > 0;
    let mut transactions = BTreeMap::new();
    for kind in OltpKind::ALL {
        let limit =
            if kind == OltpKind::Delivery && is_deferred { DEFERRED_LIMIT_NS } else { limit_ns(kind) };
        transactions.insert(kind.name().to_owned(), of_kind(&tally.kinds[kind.index()], limit, seconds));
    }
    let completed: u64 = transactions.values().map(|one| one.completed).sum();
    let threads: Vec<ThreadUse> = used.iter().map(|one| one.thread).collect();
    let driver = DriverUse::of_threads(&threads, used.iter().map(|one| one.offered).sum());
    let own_cpu_ns = driver.cpu_ns;
    let new_order = &tally.kinds[OltpKind::NewOrder.index()];
    let ordered = new_order.responses.completed() - new_order.rolled_back;
    let mut outcome = OltpOutcome {
        database: shared.connect.address.kind,
        server: facts.server.clone(),
        schema: facts.schema.name().to_owned(),
        warehouses: facts.population.warehouses,
        population_seed: facts.population.seed,
        plan: plan.clone(),
        elapsed_ns,
        interrupted: elapsed_ns < plan.time_ns,
        ended_by: fatal.as_ref().map(with_remedy),
        transactions_per_second: completed as f64 / seconds,
        new_orders_per_minute: ordered as f64 * 60.0 / seconds,
        transactions,
        deferred: is_deferred.then(|| deferred(shared, &tally, used)),
        open_loop: plan.rate.map(|_| open_loop(shared, used)),
        error_kinds: tally.errors,
        series,
        own_cpu_ns,
        own_cpu_per_transaction_ns: (completed > 0)
            .then(|| (own_cpu_ns[0] + own_cpu_ns[1]) as f64 / completed as f64),
        busiest_thread_percent: driver.busiest_percent,
        waited_percent: driver.waited_percent,
        throttled_percent: driver.throttled_percent,
        late_starts: driver.late_starts,
        driver_is_limit: driver.is_limit,
        conditions_held: Vec::new(),
        conditions_broken: Vec::new(),
        conditions_unchecked: None,
        notes: vec![DISCLAIMER.into()],
    };
    if shared.connect.address.tls.mode != TlsMode::Disable {
        outcome.notes.push("the connections were encrypted".into());
    }
    outcome.notes.extend(driver.remarks());
    outcome.notes.extend(remarks(&outcome));
    outcome.notes.extend(unfinished_words(&all, plan.timeout_ns, "transactions"));
    Ok(outcome)
}

fn of_kind(counted: &OfKind, limit_ns: u64, seconds: f64) -> OltpTransactions {
    let OfKind { responses, rolled_back, passing, retries } = counted;
    let latency_ns = responses.summary();
    OltpTransactions {
        completed: responses.completed(),
        rolled_back: *rolled_back,
        per_second: responses.completed() as f64 / seconds,
        latency_ns,
        histogram: latency_ns.and_then(|_| responses.encode_histogram().ok()),
        limit_ns,
        within_limit: responses.keep(90, limit_ns),
        deadlocks: passing[0],
        serialization_failures: passing[1],
        lock_timeouts: passing[2],
        retries: *retries,
        failed: responses.failed(),
        unfinished: responses.unfinished(),
    }
}

fn deferred(shared: &Shared<'_>, tally: &Tally, used: &[Used]) -> OltpDeferred {
    OltpDeferred {
        connections: all_deliverers(shared.plan),
        queued: tally.queued,
        orders: tally.orders,
        skipped_districts: tally.skipped,
        longest_queue: tally.longest_queue as u64,
        left: used.iter().map(|one| one.left).sum(),
    }
}

fn open_loop(shared: &Shared<'_>, used: &[Used]) -> OltpOpenLoop {
    let offered: u64 = used.iter().map(|one| one.offered).sum();
    let backlog_end: u64 = used.iter().map(|one| one.backlog).sum();
    let saturated = is_saturated(backlog_end, shared.plan.users, offered);
    OltpOpenLoop { offered, backlog_end, saturated }
}

fn remarks(outcome: &OltpOutcome) -> Vec<String> {
    let mut remarks = Vec::new();
    for (name, one) in outcome.transactions.iter().filter(|(_, one)| one.within_limit == Some(false)) {
        let limit = one.limit_ns / 1_000_000_000;
        remarks.push(format!(
            "more than 10 % of {name} took longer than {limit} s: the response times are too long"
        ));
    }
    if let Some(deferred) =
        outcome.deferred.as_ref().filter(|deferred| deferred.left * 10 > deferred.queued.max(100))
    {
        remarks.push(format!("{} Deliveries still waited at the end: they do not keep up", deferred.left));
    }
    let (users, warehouses) = (outcome.plan.users, outcome.warehouses);
    if u64::from(users) < u64::from(warehouses) {
        remarks.push(format!(
            "{users} users work at {users} of {warehouses} warehouses, one each: what lies in the others is hardly touched"
        ));
    }
    if outcome.open_loop.as_ref().is_some_and(|open| open.saturated) {
        remarks.push("the database did not keep up with the rate".into());
    }
    remarks
}

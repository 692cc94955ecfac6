//! What a load did, for people.

use std::io::{self, Write};

use virtbench_record::{OltpKind, OltpOutcome, OltpPlan, OltpTransactions};

use crate::commands::driver::{write_measured, write_open_loop};
use crate::text_table::{TextTable, left, right};

/// Writes head, table and remarks.
pub fn write(out: &mut impl Write, address: &str, outcome: &OltpOutcome) -> io::Result<()> {
    let OltpOutcome { server, schema, warehouses, .. } = outcome;
    writeln!(out, "database  {address} ({server}, schema {schema}, {warehouses} warehouses)")?;
    writeln!(out, "load      {}", load(&outcome.plan))?;
    write_measured(out, outcome.elapsed_ns, outcome.plan.ramp_up_ns, outcome.plan.seed)?;
    writeln!(out, "{}\n", transactions(outcome))?;
    writeln!(
        out,
        "{:.1} transactions/s, {:.0} new orders/min; {}",
        outcome.transactions_per_second,
        outcome.new_orders_per_minute,
        driver(outcome)
    )?;
    if let Some(deferred) = &outcome.deferred {
        writeln!(
            out,
            "deliveries by {} connections: {} queued, {} orders delivered, {} districts without one, {} at most and {} at \
             the end in the queue",
            deferred.connections,
            deferred.queued,
            deferred.orders,
            deferred.skipped_districts,
            deferred.longest_queue,
            deferred.left
        )?;
    }
    if let Some(open) = &outcome.open_loop {
        write_open_loop(out, open.offered, open.backlog_end)?;
    }
    outcome.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

/// Writes what came of the conditions of consistency, which are checked once the rest is written.
pub fn write_conditions(out: &mut impl Write, outcome: &OltpOutcome) -> io::Result<()> {
    if let Some(why) = &outcome.conditions_unchecked {
        writeln!(out, "the conditions of consistency were not checked: {why}")?;
    }
    if !outcome.conditions_held.is_empty() {
        let held: Vec<String> = outcome.conditions_held.iter().map(ToString::to_string).collect();
        let word = if outcome.conditions_broken.is_empty() { "consistent" } else { "not consistent" };
        writeln!(out, "{word}: conditions {} of clause 3.3.2 hold", held.join(", "))?;
    }
    Ok(())
}

fn load(plan: &OltpPlan) -> String {
    let shares = plan.mix.shares.map(|share| share.to_string()).join("/");
    let pace = match (&plan.rate, plan.think_factor) {
        (Some(rate), _) => format!("{} a second offered", rate.per_second),
        (None, Some(factor)) => format!("keying and think times x {factor}"),
        (None, None) => "no think times".into(),
    };
    let threads = if plan.threads == 1 { "1 thread".into() } else { format!("{} threads", plan.threads) };
    format!("{} users on {threads}, mix {shares}, {pace}", plan.users)
}

fn transactions(outcome: &OltpOutcome) -> TextTable {
    let columns = [
        left(14),
        right(10),
        right(9),
        right(10),
        right(10),
        right(10),
        right(8),
        right(10),
        right(8),
        right(8),
    ];
    let mut table = TextTable::new(0, &columns);
    table.row([
        "",
        "completed",
        "/s",
        "mean ms",
        "p90 ms",
        "p99 ms",
        "limit",
        "rolled back",
        "retries",
        "failed",
    ]);
    for kind in OltpKind::ALL {
        if let Some(one) = outcome.transactions.get(kind.name()) {
            table.row(row(kind.name(), one));
        }
    }
    table
}

fn row(name: &str, one: &OltpTransactions) -> [String; 10] {
    let ms = |ns: f64| format!("{:.2}", ns / 1e6);
    let latency = one.latency_ns.as_ref();
    let of = |figure: fn(&virtbench_units::LatencySummary) -> f64| {
        latency.map_or_else(|| "-".to_owned(), |latency| ms(figure(latency)))
    };
    let limit = match one.within_limit {
        Some(true) => "kept",
        Some(false) => "missed",
        None => "-",
    };
    [
        name.to_owned(),
        one.completed.to_string(),
        format!("{:.1}", one.per_second),
        of(|latency| latency.mean),
        of(|latency| latency.p90 as f64),
        of(|latency| latency.p99 as f64),
        limit.to_owned(),
        one.rolled_back.to_string(),
        one.retries.to_string(),
        one.failed.to_string(),
    ]
}

fn driver(outcome: &OltpOutcome) -> String {
    let each = outcome
        .own_cpu_per_transaction_ns
        .map_or_else(String::new, |ns| format!("{:.0} us of CPU a transaction, ", ns / 1e3));
    format!("the driver took {each}busiest thread {:.0} %", outcome.busiest_thread_percent)
}

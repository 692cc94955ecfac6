//! What users did, for people.

use std::io::{self, Write};

use virtbench_record::{UsersOperation, UsersOutcome, UsersPlan};
use virtbench_units::{LatencySummary, format_duration_ns};

use crate::commands::driver::{write_measured, write_open_loop};
use crate::text_table::{TextTable, left, right};

/// Writes head, table and remarks.
pub fn write(out: &mut impl Write, outcome: &UsersOutcome) -> io::Result<()> {
    let server = outcome.server.as_ref().map_or_else(String::new, |server| format!(" ({server})"));
    writeln!(out, "service   {}{server}", outcome.target)?;
    writeln!(out, "load      {}", load(&outcome.plan))?;
    for (name, value) in &outcome.details {
        writeln!(out, "{name:<9} {value}")?;
    }
    write_measured(out, outcome.elapsed_ns, outcome.plan.ramp_up_ns, outcome.plan.seed)?;
    writeln!(out, "{}\n", operations(outcome))?;
    writeln!(
        out,
        "{:.1} operations/s; the driver took {}busiest thread {:.0} %",
        outcome.all.per_second,
        cpu(outcome),
        outcome.busiest_thread_percent
    )?;
    if let Some(open) = &outcome.open_loop {
        write_open_loop(out, open.offered, open.backlog_end)?;
    }
    outcome.notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

fn load(plan: &UsersPlan) -> String {
    let pace = match (&plan.rate, plan.think_ns) {
        (Some(rate), _) => format!("{} a second offered", rate.per_second),
        (None, Some(think_ns)) => format!("{} of thinking on average", format_duration_ns(think_ns)),
        (None, None) => "no think times".to_owned(),
    };
    let (users, threads) = (plan.users, plan.threads);
    format!("{users} users in {threads} threads, {pace}, timeout {}", format_duration_ns(plan.timeout_ns))
}

fn operations(outcome: &UsersOutcome) -> TextTable {
    let columns =
        [left(8), right(11), right(11), right(10), right(10), right(10), right(10), right(10), right(8)];
    let mut table = TextTable::new(0, &columns);
    table.row(["", "completed", "/s", "mean ms", "p50 ms", "p95 ms", "p99 ms", "max ms", "failed"]);
    for (name, one) in &outcome.operations {
        table.row(row(name, one));
    }
    if outcome.operations.len() > 1 {
        table.row(row("all", &outcome.all));
    }
    table
}

fn row(name: &str, one: &UsersOperation) -> [String; 9] {
    let of = |figure: fn(&LatencySummary) -> f64| {
        one.latency_ns
            .as_ref()
            .map_or_else(|| "-".to_owned(), |latency| format!("{:.3}", figure(latency) / 1e6))
    };
    [
        name.to_owned(),
        one.completed.to_string(),
        format!("{:.1}", one.per_second),
        of(|latency| latency.mean),
        of(|latency| latency.p50 as f64),
        of(|latency| latency.p95 as f64),
        of(|latency| latency.p99 as f64),
        of(|latency| latency.max as f64),
        one.failed.to_string(),
    ]
}

fn cpu(outcome: &UsersOutcome) -> String {
    let cpu_ns = outcome.own_cpu_ns[0] + outcome.own_cpu_ns[1];
    match outcome.all.completed {
        0 => String::new(),
        completed => format!("{:.0} us of CPU an operation, ", cpu_ns as f64 / completed as f64 / 1e3),
    }
}

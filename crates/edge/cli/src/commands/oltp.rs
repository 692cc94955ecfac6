//! `virtbench oltp`

use std::io::{self, Write};

use indicatif::ProgressBar;
use serde::Serialize;
use virtbench_oltp::{Connect, DISCLAIMER, Depth, FaultKind, OltpError, Population};
use virtbench_record::{
    DatabaseKind, OltpKind, OltpOutcome, OltpPlan, OltpSecond, OltpTransactions, OltpViolation,
};

use crate::args::drivers::{
    CheckArgs, DatabaseArgs, DeliveryArg, DepthArg, OltpCommand, PopulateArgs, PreparedArg, RunArgs,
};
use crate::commands::driver::{self, Ended, write_measured, write_open_loop};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{print_json, say, tell};
use crate::text_table::{TextTable, left, right};
use crate::{interrupt, progress};

/// Populates, loads or checks a database.
pub fn execute(command: &OltpCommand) -> Outcome {
    match command {
        OltpCommand::Populate(args) => populate(args),
        OltpCommand::Run(args) => run(args),
        OltpCommand::Check(args) => check(args),
    }
}

/// What `populate --json` prints.
#[derive(Serialize)]
struct PopulatedReport {
    schema: String,
    warehouses: u32,
    seed: u64,
    rows: u64,
    bytes: u64,
    seconds: f64,
}

fn populate(args: &PopulateArgs) -> Outcome {
    let connect = connect(&args.database)?;
    let population = Population { warehouses: args.warehouses, seed: args.seed };
    let bar = progress::bar(0, "populating");
    let done =
        virtbench_oltp::populate(&connect, population, args.replace, interrupt::flag(), &mut |progress| {
            bar.set_length(progress.of);
            bar.set_position(progress.rows);
            if progress.rows >= progress.of / 100 * 99 {
                bar.set_message("making indexes");
            }
        });
    bar.finish_and_clear();
    let done = done.map_err(|error| failure(error, "nothing was made"))?;
    let report = PopulatedReport {
        schema: done.schema,
        warehouses: args.warehouses,
        seed: args.seed,
        rows: done.rows,
        bytes: done.bytes,
        seconds: done.took.as_secs_f64(),
    };
    if args.database.json {
        return Ok(print_json(&report)?);
    }
    let PopulatedReport { schema, warehouses, seed, rows, bytes, seconds } = report;
    say!(
        "{}: in schema {schema} {warehouses} warehouses of seed {seed}, {rows} rows ({:.0} MB as text) in {seconds:.1} s",
        connect.address,
        bytes as f64 / 1e6
    );
    Ok(())
}

fn run(args: &RunArgs) -> Outcome {
    let connect = connect(&args.database)?;
    let plan = plan(args);
    if let Some(asked) = args.warehouses {
        let nothing = |error| failure(error, "nothing was measured");
        let found = virtbench_oltp::find_population(&connect).map_err(nothing)?.warehouses;
        if found != asked {
            return Err(nothing(OltpError::OtherSize { address: Box::new(connect.address), found, asked }));
        }
    }
    let load_ns = plan.ramp_up_ns + plan.time_ns;
    let completed = |second: &OltpSecond| second.transactions;
    let (measured, mut company) = driver::with_bar(load_ns, "transactions", completed, |each| {
        virtbench_oltp::run_from(&connect, &plan, args.driver.begin_at, interrupt::flag(), each)
    });
    let mut outcome = measured.map_err(|error| failure(error, "nothing was measured"))?;
    outcome.notes.extend(company.notes([]));
    // Whatever comes of the check, what was measured stands there.
    if !args.database.json {
        write(&mut io::stdout().lock(), &args.database.database.to_string(), &outcome)?;
    }
    let bar = progress::timer(None, "checking");
    virtbench_oltp::settle(&connect, &mut outcome, interrupt::flag(), &mut checking(&bar));
    bar.finish_and_clear();
    if args.database.json {
        print_json(&outcome)?;
    } else {
        write_conditions(&mut io::stdout().lock(), &outcome)?;
    }
    verdict(&outcome)
}

/// Shows which condition is checked.
fn checking(bar: &ProgressBar) -> impl FnMut(u32) {
    move |number| {
        bar.set_message(format!("checking condition {number}"));
        bar.tick();
    }
}

fn plan(args: &RunArgs) -> OltpPlan {
    let shape = &args.shape;
    OltpPlan {
        users: args.users,
        threads: args.driver.threads(args.users),
        ramp_up_ns: args.driver.ramp,
        time_ns: args.driver.time,
        rate: shape.arrivals.rate(shape.rate),
        mix: shape.mix(),
        think_factor: shape.think_times,
        deferred_delivery: shape.delivery == DeliveryArg::Deferred,
        isolation: shape.isolation(),
        prepared: shape.prepared == PreparedArg::Yes,
        retries: shape.retries,
        timeout_ns: shape.timeout,
        check_all: shape.conditions == DepthArg::All,
        seed: args.driver.seed,
    }
}

/// What was measured is printed in any case; whether it is what was asked for, the exit code says.
fn verdict(outcome: &OltpOutcome) -> Outcome {
    let ended = Ended {
        elapsed_ns: outcome.elapsed_ns,
        by: outcome.ended_by.as_deref(),
        interrupted: outcome.interrupted,
        failed: outcome.failed(),
        error_kinds: &outcome.error_kinds,
    };
    if outcome.ended_by.is_none() && !outcome.conditions_broken.is_empty() {
        return Err(failure(OltpError::Inconsistent(outcome.conditions_broken.clone()), ""));
    }
    driver::verdict(&ended, "transactions")?;
    match &outcome.conditions_unchecked {
        Some(_) if interrupt::requested() => Err(interrupt::failure(
            "what was measured was reported, the conditions of consistency were not checked",
        )),
        Some(why) => {
            let message = format!(
                "the conditions of consistency were not checked: {why}; what was measured stands above, \
                 `virtbench oltp check` checks them"
            );
            Err(Failure::message(Kind::Measured, message))
        }
        None => Ok(()),
    }
}

/// What `check --json` prints.
#[derive(Serialize)]
struct CheckedReport {
    warehouses: u32,
    seed: u64,
    held: Vec<u32>,
    broken: Vec<OltpViolation>,
}

fn check(args: &CheckArgs) -> Outcome {
    let connect = connect(&args.database)?;
    let depth = if args.conditions == DepthArg::All { Depth::All } else { Depth::Required };
    let bar = progress::timer(None, "checking");
    let found = virtbench_oltp::check(&connect, depth, interrupt::flag(), &mut checking(&bar));
    bar.finish_and_clear();
    let found = found.map_err(|error| failure(error, "nothing was decided"))?;
    let Population { warehouses, seed } = found.population;
    let report = CheckedReport { warehouses, seed, held: found.held, broken: found.broken };
    if args.database.json {
        print_json(&report)?;
    } else {
        let held: Vec<String> = report.held.iter().map(ToString::to_string).collect();
        say!("{warehouses} warehouses of seed {seed}: conditions {} of clause 3.3.2 hold", held.join(", "));
    }
    match report.broken.is_empty() {
        true => Ok(()),
        false => Err(failure(OltpError::Inconsistent(report.broken), "")),
    }
}

/// The address with the password, from where nobody else can read it.
fn connect(args: &DatabaseArgs) -> Result<Connect, Failure> {
    let variable = match args.database.kind {
        DatabaseKind::PostgreSql => "PGPASSWORD",
        DatabaseKind::MariaDb => "MYSQL_PWD",
    };
    let password = match &args.password_file {
        Some(path) => Some(driver::read(path)?),
        None => std::env::var(variable).ok(),
    };
    tell!("{DISCLAIMER}");
    Ok(Connect { address: args.database.clone(), password })
}

fn failure(error: OltpError, done: &str) -> Failure {
    let kind = match &error {
        OltpError::Abandoned { why, left } if why.is_stop() => return interrupt::failure(&left.words()),
        OltpError::Stopped => return interrupt::failure(done),
        OltpError::Plan(_) => Kind::Usage,
        OltpError::Connect { fault, .. } if fault.kind != FaultKind::TooManyConnections => Kind::Target,
        OltpError::Inconsistent(_) => Kind::Inconsistent,
        OltpError::Driver(_) => Kind::Other,
        _ => Kind::Target,
    };
    Failure::new(kind, error)
}

/// Writes head, table and remarks.
fn write(out: &mut impl Write, address: &str, outcome: &OltpOutcome) -> io::Result<()> {
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
fn write_conditions(out: &mut impl Write, outcome: &OltpOutcome) -> io::Result<()> {
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

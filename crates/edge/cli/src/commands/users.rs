//! `virtbench users`

use std::collections::BTreeMap;
use std::io::{self, Write};

use virtbench_record::{UsersOperation, UsersOutcome, UsersPlan, UsersSecond, UsersService};
use virtbench_units::{LatencySummary, format_bytes, format_duration_ns};
use virtbench_users::{Address, Aim, KeyValue, Mail, MailMix, Service, UsersError, Web};

use crate::args::drivers::{KeyValueArgs, MailArgs, UsersCommand, UsersLoadArgs, WebArgs};
use crate::commands::driver::{self, Ended, write_measured, write_open_loop};
use crate::exit::{Failure, Kind, Outcome};
use crate::interrupt;
use crate::say::print_json;
use crate::text_table::{TextTable, left, right};

const HTTP_PORT: u16 = 80;

const REDIS_PORT: u16 = 6379;

/// Lets users ask a service for what it has.
pub fn execute(command: &UsersCommand) -> Outcome {
    match command {
        UsersCommand::Web(args) => web(args),
        UsersCommand::KeyValue(args) => key_value(args),
        UsersCommand::Mail(args) => mail(args),
    }
}

fn web(args: &WebArgs) -> Outcome {
    let written = args.address.trim_end_matches('/');
    if written.starts_with("https://") {
        return Err(unusable("connections are not encrypted: give HOST:PORT of a server of HTTP".into()));
    }
    let written = written.strip_prefix("http://").unwrap_or(written);
    let address = Address::parse(written, HTTP_PORT).map_err(unusable)?;
    let target = format!("http://{address}");
    let service = Web::new(address, args.host.as_deref(), &args.path).map_err(unusable)?;
    let paths: Vec<String> = args.path.iter().map(|page| format!("{}={}", page.path, page.weight)).collect();
    let mut details = vec![("paths", paths.join(" "))];
    details.extend(args.host.clone().map(|host| ("host", host)));
    apply(&service, UsersService::Web, target, details, &args.load)
}

fn key_value(args: &KeyValueArgs) -> Outcome {
    let address = Address::parse(&args.address, REDIS_PORT).map_err(unusable)?;
    let target = format!("redis://{address}");
    let password = std::env::var("REDISCLI_AUTH").ok().filter(|password| !password.is_empty());
    let bytes = usize::try_from(args.value_size).unwrap_or(usize::MAX);
    if bytes > MOST_BYTES {
        return Err(unusable(format!("a value has at most {}", format_bytes(MOST_BYTES as u64))));
    }
    let [gets, sets] = args.mix;
    let service = KeyValue::new(address, password, (args.keys, bytes), (gets, sets)).map_err(unusable)?;
    let details = vec![
        ("keys", args.keys.to_string()),
        ("value_bytes", args.value_size.to_string()),
        ("mix", format!("get={gets} set={sets}")),
    ];
    apply(&service, UsersService::KeyValue, target, details, &args.load)
}

/// The largest value or message, in bytes.
const MOST_BYTES: usize = 64 << 20;

fn mail(args: &MailArgs) -> Outcome {
    let smtp = Address::parse(&args.host, args.smtp_port).map_err(unusable)?.with_port(args.smtp_port);
    let imap = smtp.with_port(args.imap_port);
    let target = format!("{smtp} and {imap}");
    let password = match (&args.password, &args.password_file) {
        (Some(password), _) => password.clone(),
        (None, Some(path)) => driver::read(path)?,
        (None, None) => String::new(),
    };
    let bytes = usize::try_from(args.message_size).unwrap_or(usize::MAX);
    if bytes > MOST_BYTES {
        return Err(unusable(format!("a message has at most {}", format_bytes(MOST_BYTES as u64))));
    }
    let [send, check, read, append] = args.mix;
    let shape = (bytes, MailMix { send, check, read, append });
    let service = Mail::new((smtp, imap), (&args.user, password), args.mailboxes, &args.domain, shape)
        .map_err(unusable)?;
    let details = vec![
        ("mailboxes", args.mailboxes.to_string()),
        ("message_bytes", args.message_size.to_string()),
        ("mix", format!("send={send} check={check} read={read} append={append}")),
    ];
    apply(&service, UsersService::Mail, target, details, &args.load)
}

fn apply<S: Service>(
    service: &S,
    kind: UsersService,
    target: String,
    details: Vec<(&str, String)>,
    args: &UsersLoadArgs,
) -> Outcome {
    let plan = plan(kind, args);
    let details: BTreeMap<String, String> =
        details.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let aim = Aim { target, details, begin_at_ns: args.driver.begin_at };
    let load_ns = plan.ramp_up_ns + plan.time_ns;
    let completed = |second: &UsersSecond| second.completed;
    let (measured, mut company) = driver::with_bar(load_ns, "operations", completed, |each| {
        virtbench_users::run(service, &aim, &plan, interrupt::flag(), each)
    });
    let mut outcome = measured.map_err(failure)?;
    outcome.notes.extend(company.notes([]));
    if args.json {
        print_json(&outcome)?;
    } else {
        write(&mut io::stdout().lock(), &outcome)?;
    }
    verdict(&outcome)
}

fn plan(service: UsersService, args: &UsersLoadArgs) -> UsersPlan {
    UsersPlan {
        service,
        users: args.users,
        threads: args.driver.threads(args.users),
        ramp_up_ns: args.driver.ramp,
        time_ns: args.driver.time,
        rate: args.arrivals.rate(args.rate),
        think_ns: args.think.filter(|ns| *ns > 0),
        timeout_ns: args.timeout,
        seed: args.driver.seed,
    }
}

/// What was measured is printed in any case; whether it is what was asked for, the exit code says.
fn verdict(outcome: &UsersOutcome) -> Outcome {
    let ended = Ended {
        elapsed_ns: outcome.elapsed_ns,
        by: outcome.ended_by.as_deref(),
        interrupted: outcome.interrupted,
        failed: outcome.all.failed,
        error_kinds: &outcome.error_kinds,
    };
    driver::verdict(&ended, "operations")?;
    let seconds = outcome.elapsed_ns as f64 / 1e9;
    if outcome.all.completed == 0 {
        let message = format!("no operation was completed in {seconds:.1} s: measure for longer");
        return Err(Failure::message(Kind::Measured, message));
    }
    Ok(())
}

fn unusable(words: String) -> Failure {
    Failure::message(Kind::Usage, words)
}

fn failure(error: UsersError) -> Failure {
    let kind = match &error {
        UsersError::Stopped => return interrupt::failure("nothing was measured"),
        UsersError::Plan(_) => Kind::Usage,
        UsersError::Driver(_) => Kind::Other,
        UsersError::Service { .. } | UsersError::TooLong(_) | UsersError::EndedEarly(_) => Kind::Target,
    };
    Failure::new(kind, error)
}

/// Writes head, table and remarks.
fn write(out: &mut impl Write, outcome: &UsersOutcome) -> io::Result<()> {
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

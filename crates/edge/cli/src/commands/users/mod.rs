//! `virtbench users`

mod table;

use std::collections::BTreeMap;
use std::io;

use virtbench_record::{UsersOutcome, UsersPlan, UsersSecond, UsersService};
use virtbench_units::format_bytes;
use virtbench_users::{Address, Aim, KeyValue, Mail, MailMix, Service, UsersError, Web};

use crate::args::users::{KeyValueArgs, MailArgs, UsersCommand, UsersLoadArgs, WebArgs};
use crate::commands::driver::{self, Ended};
use crate::exit::{Failure, Kind, Outcome};
use crate::say::print_json;
use crate::{interrupt, password_file};

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
        (None, Some(path)) => password_file::read(path)?,
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
        table::write(&mut io::stdout().lock(), &outcome)?;
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

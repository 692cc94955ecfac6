//! What loads a member, a mode of our own program or a client of the user's, and what it tells of the member, in one form whatever it was.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{fs, thread};

use hdrhistogram::Histogram;
use regex::Regex;
use virtbench_engine::monotonic_ns;
use virtbench_lab::CommandError;
use virtbench_record::{
    OltpOutcome, TileClient, TileDone, TileLoad, TileLoadKind, TileMemberPlan, TileSecond, TilesPlan,
    UsersOutcome,
};
use virtbench_units::{LatencySummary, decode_histogram, encode_histogram};

use crate::disks::served::Served;
use crate::studies::application::{Client, client_words, explained};
use crate::studies::oltp::{connect, database_kind, port};
use crate::studies::predictions::{last_number, number_pattern};

/// Reads the JSON of `virtbench oltp run` or `virtbench users`, which were to begin at this moment of the monotonic clock.
///
/// # Errors
/// It is no such thing, or the load ended before its time; in words.
pub(super) fn read_outcome(kind: TileLoadKind, json: &str, begin_ns: u64) -> Result<TileDone, String> {
    let wrong = |error: serde_json::Error| format!("what its generator printed cannot be read: {error}");
    let (done, interrupted, ended_by) = match kind {
        TileLoadKind::Oltp => {
            let outcome: OltpOutcome = serde_json::from_str(json).map_err(wrong)?;
            (of_oltp(&outcome)?, outcome.interrupted, outcome.ended_by)
        }
        _ => {
            let outcome: UsersOutcome = serde_json::from_str(json).map_err(wrong)?;
            (of_users(&outcome, begin_ns), outcome.interrupted, outcome.ended_by)
        }
    };
    match ended_by {
        Some(why) => Err(format!("the load ended before its time: {why}")),
        None if interrupted => Err("the load was stopped before its time".into()),
        None => Ok(done),
    }
}

/// Whether a member begins less than nine tenths of what is due. A host that stands still for a moment at the end of a run leaves a
/// few operations behind: these stand in the response times.
fn fell_behind(backlog_end: u64, offered: u64) -> bool {
    backlog_end.saturating_mul(10) > offered
}

fn of_users(outcome: &UsersOutcome, begin_ns: u64) -> TileDone {
    let series = outcome.series.iter().map(|second| TileSecond {
        start_ns: second.start_ns,
        completed: second.completed,
        failed: second.failed,
        response_ns: second.p95_ns,
    });
    TileDone {
        per_second: outcome.all.per_second,
        completed: Some(outcome.all.completed),
        failed: outcome.all.failed,
        latency_ns: outcome.all.latency_ns,
        histogram: outcome.all.histogram.clone(),
        unfinished: outcome.all.unfinished,
        client_response_ns: None,
        error_kinds: outcome.error_kinds.clone(),
        late_ns: Some(outcome.begin_ns.saturating_sub(begin_ns)),
        backlog_end: outcome.open_loop.as_ref().map(|open| open.backlog_end),
        fell_behind: outcome
            .open_loop
            .as_ref()
            .is_some_and(|open| fell_behind(open.backlog_end, open.offered)),
        series: series.collect(),
        busiest_thread_percent: Some(outcome.busiest_thread_percent),
        driver_is_limit: outcome.driver_is_limit,
    }
}

fn of_oltp(outcome: &OltpOutcome) -> Result<TileDone, String> {
    let series = outcome.series.iter().map(|second| TileSecond {
        start_ns: second.start_ns,
        completed: second.transactions,
        failed: 0,
        response_ns: second.p90_ns,
    });
    let histograms: Vec<&str> =
        outcome.transactions.values().filter_map(|kind| kind.histogram.as_deref()).collect();
    let all = merged(&histograms)?;
    let encoded = all.as_ref().map(encode_histogram).transpose().map_err(|error| error.to_string())?;
    Ok(TileDone {
        histogram: encoded,
        unfinished: outcome.transactions.values().map(|kind| kind.unfinished).sum(),
        per_second: outcome.transactions_per_second,
        completed: Some(outcome.transactions.values().map(|kind| kind.completed).sum()),
        failed: outcome.failed(),
        latency_ns: all.as_ref().map(LatencySummary::of_histogram),
        client_response_ns: None,
        error_kinds: outcome.error_kinds.clone(),
        late_ns: None,
        backlog_end: outcome.open_loop.as_ref().map(|open| open.backlog_end),
        fell_behind: outcome
            .open_loop
            .as_ref()
            .is_some_and(|open| fell_behind(open.backlog_end, open.offered)),
        series: series.collect(),
        busiest_thread_percent: Some(outcome.busiest_thread_percent),
        driver_is_limit: outcome.driver_is_limit,
    })
}

/// Response times of all kinds of transactions together.
fn merged(histograms: &[&str]) -> Result<Option<Histogram<u64>>, String> {
    let mut all: Option<Histogram<u64>> = None;
    for text in histograms {
        let one = decode_histogram(text).map_err(|error| error.to_string())?;
        match &mut all {
            Some(all) => all.add(&one).map_err(|error| error.to_string())?,
            None => all = Some(one),
        }
    }
    Ok(all.filter(|all| !all.is_empty()))
}

/// The patterns of a client.
pub(super) struct ClientPatterns {
    per_second: Regex,
    response_ms: Option<Regex>,
    failed: Option<Regex>,
}

/// Reads the patterns of a client.
///
/// # Errors
/// One is no regular expression, or has not exactly one group; in words.
pub(super) fn client_patterns(client: &TileClient) -> Result<ClientPatterns, String> {
    let pattern = |name: &str, text: &str| number_pattern(text).map_err(|why| format!("load: {name}: {why}"));
    let optional =
        |name: &str, text: &Option<String>| text.as_deref().map(|text| pattern(name, text)).transpose();
    Ok(ClientPatterns {
        per_second: pattern("per_second", &client.per_second)?,
        response_ms: optional("response_ms", &client.response_ms)?,
        failed: optional("failed", &client.failed)?,
    })
}

/// What a client printed of itself, which had so many seconds.
///
/// # Errors
/// A number is not in it; in words, with the end of what was printed.
pub(super) fn read_client(client: &TileClient, output: &str, seconds: f64) -> Result<TileDone, String> {
    let patterns = client_patterns(client)?;
    let number =
        |name: &str, pattern: &Regex| last_number(pattern, output).map_err(|why| format!("{name}: {why}"));
    let optional = |name: &str, pattern: &Option<Regex>| {
        pattern.as_ref().map(|pattern| number(name, pattern)).transpose()
    };
    let whole =
        |value: f64| std::time::Duration::try_from_secs_f64(value / 1e9).map_or(0, |it| it.as_nanos());
    let whole = |value: f64| u64::try_from(whole(value)).unwrap_or(u64::MAX);
    let response_ms = optional("response_ms", &patterns.response_ms)?;
    let per_second = number("per_second", &patterns.per_second)?;
    let failed = optional("failed", &patterns.failed)?.map(whole);
    Ok(TileDone {
        per_second,
        // Only beside what failed is it of use.
        completed: failed.map(|_| whole((per_second * seconds).round())),
        failed: failed.unwrap_or(0),
        client_response_ns: response_ms.map(|ms| whole(ms * 1e6)),
        error_kinds: BTreeMap::new(),
        ..TileDone::default()
    })
}

/// Beyond ramp-up and measuring: connections, operations that are in flight at the end, a check of consistency.
const GRACE: Duration = Duration::from_secs(150);

const PAUSE: Duration = Duration::from_millis(20);

/// The largest outcome that is read, in bytes.
const LONGEST: u64 = 64 << 20;

/// Writes what a program prints into a file, so that it can be told from what it says meanwhile. The password is that of the
/// recipe for MariaDB.
const INTO_FILE: &str = "export MYSQL_PWD=bench; exec \"$@\" >\"$0\"";

/// When everybody begins, by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moments {
    /// Generators begin, in nanoseconds.
    pub(super) begin_ns: u64,
    /// Measuring begins, in nanoseconds.
    pub(super) measure_ns: u64,
    /// Measuring ends, in nanoseconds.
    pub(super) end_ns: u64,
}

/// Why nothing came of a generator, in words.
#[derive(Debug)]
pub(super) enum NoOutcome {
    /// It was ended because it was to stop.
    Stopped(String),
    /// It failed, or what it printed cannot be read.
    Failed(String),
}

impl NoOutcome {
    fn of_command(error: &CommandError, words: String) -> Self {
        match error {
            CommandError::Stopped { .. } => Self::Stopped(words),
            _ => Self::Failed(words),
        }
    }

    /// In words.
    pub(super) fn words(self) -> String {
        match self {
            Self::Stopped(words) | Self::Failed(words) => words,
        }
    }
}

/// A generator that is to be run.
#[derive(Debug)]
pub(super) struct Generator {
    load: TileLoad,
    command: Client,
    /// Where its outcome goes; nothing of a client.
    outcome: Option<PathBuf>,
    moments: Moments,
}

impl Generator {
    /// What loads this member; nothing where it is idle.
    ///
    /// # Errors
    /// It has no port for it; in words.
    pub(super) fn of(
        plan: &TilesPlan,
        member: &TileMemberPlan,
        served: &dyn Served,
        program: &Path,
        folder: &Path,
        moments: Moments,
        seed: u64,
    ) -> Result<Option<Self>, String> {
        let load = member.load.clone();
        let limit = Duration::from_nanos(plan.ramp_up_ns.saturating_add(plan.time_ns))
            + GRACE
            + Duration::from_nanos(moments.begin_ns.saturating_sub(monotonic_ns()));
        let (words, outcome) = match (load.kind, &load.client) {
            (TileLoadKind::Idle, _) => return Ok(None),
            (TileLoadKind::Client, None) => return Err("a client has no command: a defect".into()),
            (_, Some(client)) => {
                let seconds = format!("{}", plan.time_ns as f64 / 1e9);
                (client.command.iter().map(|word| word.replace("{seconds}", &seconds)).collect(), None)
            }
            (_, None) => {
                let file = folder.join(format!("outcome-{seed}.json"));
                let mut words: Vec<String> = ["sh", "-c", INTO_FILE].map(str::to_owned).into();
                words.extend([file.display().to_string(), program.display().to_string()]);
                words.extend(own_words(plan, member, served, moments, seed)?);
                (words, Some(file))
            }
        };
        let words = client_words(&words, served)?;
        let command = Client { words, reach: served.reach(), limit };
        Ok(Some(Self { load, command, outcome, moments }))
    }

    /// Whether it may end before measuring does: a client of the user's ends when it likes.
    pub(super) fn may_end_early(&self) -> bool {
        self.outcome.is_none()
    }

    /// Runs it to its end, or until it is to stop. Nothing of it is left.
    ///
    /// # Errors
    /// It failed, what it printed cannot be read, or it was to stop.
    pub(super) fn run(&self, stop: &AtomicBool) -> Result<TileDone, NoOutcome> {
        if let Some(client) = &self.load.client {
            wait_until(self.moments.measure_ns, stop);
            let end = self.command.run(stop);
            end.result.as_ref().map_err(|error| NoOutcome::of_command(error, explained(error)))?;
            let seconds = self.moments.end_ns.saturating_sub(self.moments.measure_ns) as f64 / 1e9;
            return read_client(client, &end.output, seconds).map_err(NoOutcome::Failed);
        }
        let end = self.command.run(stop);
        let nowhere = || NoOutcome::Failed("its outcome goes nowhere: a defect".into());
        let file = self.outcome.as_deref().ok_or_else(nowhere)?;
        let size = fs::metadata(file).map_or(0, |facts| facts.len());
        let json = if size <= LONGEST { fs::read_to_string(file).unwrap_or_default() } else { String::new() };
        // Operations that fail are in the outcome, and its exit code tells of them too.
        match (read_outcome(self.load.kind, &json, self.moments.begin_ns), &end.result) {
            (Ok(done), _) => Ok(done),
            (Err(why), Err(error)) => {
                let said = || format!("{}: {}", explained(error), end.output.trim());
                Err(NoOutcome::of_command(error, if json.is_empty() { said() } else { why }))
            }
            (Err(why), Ok(())) => Err(NoOutcome::Failed(why)),
        }
    }
}

/// The command of our own that is the generator of such a load, up to the address that it loads; nothing of a load that has none.
#[must_use]
pub fn generator_command(kind: TileLoadKind) -> &'static [&'static str] {
    match kind {
        TileLoadKind::Oltp => &["oltp", "run", "--database"],
        TileLoadKind::Web => &["users", "web"],
        TileLoadKind::KeyValue => &["users", "key-value"],
        TileLoadKind::Mail => &["users", "mail"],
        TileLoadKind::Client | TileLoadKind::Idle => &[],
    }
}

/// The words of a generator that is a mode of our own program.
///
/// # Errors
/// A database has no address; in words.
fn own_words(
    plan: &TilesPlan,
    member: &TileMemberPlan,
    served: &dyn Served,
    moments: Moments,
    seed: u64,
) -> Result<Vec<String>, String> {
    let load = &member.load;
    let mut words: Vec<String> = generator_command(load.kind).iter().map(|word| (*word).to_owned()).collect();
    match load.kind {
        TileLoadKind::Oltp => {
            let kind = database_kind(&member.appliance).ok_or("its recipe is no database: a defect")?;
            let at = served.address(port(kind)).ok_or("the database has no address")?;
            words.push(connect(kind, at).address.to_string());
        }
        TileLoadKind::Web | TileLoadKind::KeyValue => words.push("{host}:{port}".into()),
        TileLoadKind::Mail => {
            words.extend(["{host}", "--smtp-port={port:25}", "--imap-port={port:143}"].map(str::to_owned));
        }
        TileLoadKind::Client | TileLoadKind::Idle => {}
    }
    words.push("--json".into());
    let nanoseconds = |ns: u64| format!("{ns}ns");
    let mut add = |name: &str, value: Option<String>| {
        words.extend(value.map(|value| format!("--{name}={value}")));
    };
    add("users", load.users.map(|users| users.to_string()));
    add("rate", load.rate.map(|rate| format!("{rate}/s")));
    add("think", load.think_ns.map(nanoseconds));
    add("ramp", Some(nanoseconds(plan.ramp_up_ns)));
    add("time", Some(nanoseconds(plan.time_ns)));
    add("seed", Some(seed.to_string()));
    add("begin-at", Some(moments.begin_ns.to_string()));
    words.extend(load.options.iter().cloned());
    Ok(words)
}

/// Waits for a moment, or until it is to stop.
pub(super) fn wait_until(moment_ns: u64, stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        let left = Duration::from_nanos(moment_ns.saturating_sub(monotonic_ns()));
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_tells_by_its_patterns() {
        let client = TileClient {
            command: vec!["x".into()],
            per_second: "rate ([0-9.]+)".into(),
            response_ms: Some("p95 ([0-9.]+) ms".into()),
            failed: Some("errors ([0-9]+)".into()),
        };
        let done = read_client(&client, "rate 7.5\np95 1.25 ms\nerrors 3\n", 2.0).unwrap();
        assert_eq!((done.per_second, done.failed, done.response_ns(95.0)), (7.5, 3, Some(1_250_000)));
        assert_eq!(done.completed, Some(15));
        let error = read_client(&client, "rate 7.5\nbye\n", 2.0).unwrap_err();
        assert!(error.starts_with("response_ms: ") || error.starts_with("failed: "), "{error}");
        assert!(error.contains("bye"), "{error}");
    }

    #[test]
    fn a_generator_that_printed_nothing_is_no_outcome() {
        for kind in [TileLoadKind::Oltp, TileLoadKind::Web] {
            assert!(read_outcome(kind, "", 0).unwrap_err().contains("cannot be read"));
        }
    }
}

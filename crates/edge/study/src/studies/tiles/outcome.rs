//! What a generator tells of a member, in one form whatever it was.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use regex::Regex;
use virtbench_record::{OltpOutcome, TileClient, TileDone, TileLoadKind, TileSecond, UsersOutcome};
use virtbench_units::{LatencySummary, decode_histogram, encode_histogram};

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

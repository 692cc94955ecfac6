//! How many operations a platform does in a minute, while it is in a steady state, and whether a piece of a run is a result.
//!
//! A piece begins with nothing in flight and ends with a drain in which nothing starts. Neither is the platform's steady state. By
//! Little's law, in flight = throughput x latency, an open loop that is kept up with has as many in flight at the end as it had once
//! the first operations were over: what the drain finishes is what the beginning had still to start. Then the throughput is that of the
//! operations that were due within the piece, over its length. Where the backlog grows meanwhile, it is that of the completions between
//! those two moments. In a closed loop always as many are in flight, and each operation counts by the share of its time that lies
//! within the piece.
//!
//! A piece is none where less than nine tenths of the operations that were due reached the platform: because nobody answered, or because
//! no VM was in a state for them. That holds for every piece at a given rate, not only after an outage: figures of what was left would be
//! those of a lighter load. In a closed loop nothing is due while the platform is away, so the time counts in place of the number. While
//! the highest rate is searched, a rate for which there are too few VMs is an answer: it is too high. There only an outage spoils a piece.

use std::collections::BTreeMap;

use virtbench_record::{OperationKind, OperationsLoad, OperationsMeasured, Status, SteadyWindow};

/// An operation that was performed, in nanoseconds from the beginning of its piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Which operation.
    pub kind: OperationKind,
    /// When it was to start.
    pub intended_ns: u64,
    /// When its effect was seen, or it had failed.
    pub ended_ns: u64,
    /// Whether it did what it is for.
    pub is_done: bool,
}

impl Span {
    fn latency_ns(&self) -> u64 {
        self.ended_ns.saturating_sub(self.intended_ns)
    }
}

/// Those that are due first tell how long operations take before a backlog of the piece's own: this share of them, and so many at least.
const EARLY: (usize, usize) = (4, 5);

/// What a piece of `length_ns` nanoseconds did in its steady state. `is_closed` says that operations start when others end.
#[must_use]
pub fn steady_window(spans: &[Span], length_ns: u64, is_closed: bool) -> SteadyWindow {
    let mut due: Vec<&Span> = spans.iter().filter(|span| span.intended_ns < length_ns).collect();
    due.sort_by_key(|span| span.intended_ns);
    if is_closed { closed(&due, length_ns) } else { open(&due, length_ns) }
}

/// With spans in the order in which they were due.
fn open(due: &[&Span], length_ns: u64) -> SteadyWindow {
    let early = due.len().min((due.len() / EARLY.0).max(EARLY.1));
    let (first, last) = (sorted_latencies(&due[..early]), sorted_latencies(&due[due.len() - early..]));
    let early_ns = percentile(&first, 95);
    let slows = is_later(&first, &last);
    let (from_ns, until_ns) = (early_ns.min(length_ns / 2), length_ns);
    let in_flight = |at_ns: u64| {
        let is_open = |span: &&&Span| span.intended_ns <= at_ns && span.ended_ns > at_ns;
        due.iter().filter(is_open).count() as u64
    };
    let intended = due.iter().filter(|span| span.intended_ns > from_ns).count() as u64;
    let (backlog_at_start, backlog_at_end) = (in_flight(from_ns), in_flight(until_ns));
    let is_short = early_ns > length_ns / 2 && !slows;
    let stayed = stayed((backlog_at_start, backlog_at_end), intended, slows);
    // What a piece cannot tell is taken for what arrives: nothing says that less is done.
    let counted_from_ns = if is_short || stayed { 0 } else { from_ns };
    let counts = |span: &&&Span| {
        let is_within = is_short || stayed || (span.ended_ns > from_ns && span.ended_ns <= until_ns);
        span.is_done && is_within
    };
    let mut done: BTreeMap<OperationKind, f64> = BTreeMap::new();
    for span in due.iter().filter(counts) {
        *done.entry(span.kind).or_default() += 1.0;
    }
    SteadyWindow {
        from_ns,
        until_ns,
        intended,
        backlog_at_start,
        backlog_at_end,
        is_short,
        kept_up: (!is_short).then_some(stayed),
        per_minute: a_minute(done, until_ns - counted_from_ns),
    }
}

/// Whether a backlog stayed as it was: not where it grew by more than a twentieth of what was due, and by more than chance or while operations
/// came to take longer, as all of a queue do.
fn stayed((at_start, at_end): (u64, u64), intended: u64, slows: bool) -> bool {
    let growth = at_end.saturating_sub(at_start) as f64;
    // The number in flight under random arrivals varies by its root.
    let chance = 2.0 * (2.0 * at_start as f64 + 1.0).sqrt();
    growth <= 0.05 * intended as f64 || (growth <= chance && !slows)
}

/// Whether latencies are longer later on than chance has them, by the rank sum of Mann and Whitney (Annals of Mathematical Statistics 18,
/// 1947) at 1 %. Both are sorted; equal ones count half.
fn is_later(first: &[u64], last: &[u64]) -> bool {
    let (n, m) = (first.len() as f64, last.len() as f64);
    let above: f64 = first
        .iter()
        .map(|one| {
            let below_or_at = last.partition_point(|other| other <= one);
            let below = last.partition_point(|other| other < one);
            m - f64::midpoint(below as f64, below_or_at as f64)
        })
        .sum();
    let mut all: Vec<u64> = first.iter().chain(last).copied().collect();
    all.sort_unstable();
    let ties: f64 = all
        .chunk_by(|one, other| one == other)
        .map(|tie| (tie.len() as f64).powi(3) - tie.len() as f64)
        .sum();
    let variance = n * m / 12.0 * ((n + m + 1.0) - ties / ((n + m) * (n + m - 1.0)).max(1.0));
    variance > 0.0 && (above - n * m / 2.0) / variance.sqrt() > 2.33
}

fn closed(due: &[&Span], length_ns: u64) -> SteadyWindow {
    let mut done: BTreeMap<OperationKind, f64> = BTreeMap::new();
    for span in due.iter().filter(|span| span.is_done) {
        let within_ns = span.ended_ns.min(length_ns).saturating_sub(span.intended_ns);
        *done.entry(span.kind).or_default() += within_ns as f64 / span.latency_ns().max(1) as f64;
    }
    SteadyWindow {
        until_ns: length_ns,
        intended: due.len() as u64,
        backlog_at_end: due.iter().filter(|span| span.ended_ns > length_ns).count() as u64,
        per_minute: a_minute(done, length_ns),
        ..SteadyWindow::default()
    }
}

fn a_minute(done: BTreeMap<OperationKind, f64>, length_ns: u64) -> BTreeMap<OperationKind, f64> {
    let minutes = length_ns.max(1) as f64 / 60e9;
    done.into_iter().map(|(kind, count)| (kind, count / minutes)).collect()
}

fn sorted_latencies(spans: &[&Span]) -> Vec<u64> {
    let mut latencies: Vec<u64> = spans.iter().map(|span| span.latency_ns()).collect();
    latencies.sort_unstable();
    latencies
}

/// 0 where there are none.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0)
}

/// The least share of a piece's operations, or of its time, for it to be a result.
const LEAST_ISSUED: f64 = 0.9;

/// What became of a piece of `length_ns` nanoseconds at `per_minute`, or in a closed loop.
#[must_use]
pub fn judged(
    measured: OperationsMeasured,
    load: &OperationsLoad,
    per_minute: Option<f64>,
    length_ns: u64,
) -> Status<OperationsMeasured> {
    let why = match (load, per_minute) {
        (_, None) => too_long_away(&measured, length_ns).or_else(|| nothing_due(&measured, per_minute)),
        (OperationsLoad::Max { .. }, Some(_)) => too_few(&measured, measured.unreachable())
            .or_else(|| too_long_away(&measured, length_ns))
            .or_else(|| nothing_due(&measured, per_minute)),
        (_, Some(_)) => too_few(&measured, measured.not_reached()),
    };
    let measured = Box::new(measured);
    match why {
        None => Status::Measured(measured),
        Some(why) => Status::Incomplete { why, partly: measured },
    }
}

/// Why a piece is none, where so many of its operations are missing.
fn too_few(measured: &OperationsMeasured, missing: u64) -> Option<String> {
    let (intended, unreachable) = (measured.intended, measured.unreachable().min(missing));
    let missing_share = missing as f64 / intended.max(1) as f64;
    if 1.0 - missing_share >= LEAST_ISSUED {
        return None;
    }
    let causes = [
        (unreachable, "found nobody who answered"),
        (missing - unreachable, "had no VM in a state for them"),
    ];
    let causes: Vec<String> = causes
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    Some(format!(
        "{missing} of {intended} operations ({:.0} %) were not issued: {}",
        100.0 * missing_share,
        causes.join(", ")
    ))
}

/// Why a piece is none, where nobody answered for more than a tenth of it.
fn too_long_away(measured: &OperationsMeasured, length_ns: u64) -> Option<String> {
    let away = measured.outage_ns as f64 / length_ns.max(1) as f64;
    if 1.0 - away < LEAST_ISSUED {
        let seconds = [measured.outage_ns, length_ns].map(|ns| ns as f64 / 1e9);
        return Some(format!("nobody answered for {:.1} s of {:.1} s", seconds[0], seconds[1]));
    }
    None
}

/// Why a piece is none in which no operation was to start.
fn nothing_due(measured: &OperationsMeasured, per_minute: Option<f64>) -> Option<String> {
    let why = match per_minute {
        None => "no VM was in a state for any operation",
        Some(_) => "no operation was due: the piece is too short for its rate",
    };
    (measured.intended == 0).then(|| why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn span(intended_ns: u64, latency_ns: u64) -> Span {
        Span { kind: OperationKind::PowerOn, intended_ns, ended_ns: intended_ns + latency_ns, is_done: true }
    }

    /// Operations a second apart that each take so long, for 20 s.
    fn every_second(latency_ns: impl Fn(u64) -> u64) -> Vec<Span> {
        (0..20).map(|second| span(second * S + S / 2, latency_ns(second))).collect()
    }

    #[test]
    fn a_long_latency_costs_no_throughput() {
        let window = steady_window(&every_second(|_| 6 * S), 20 * S, false);
        assert!((window.total_per_minute() - 60.0).abs() < 1e-9, "{window:?}");
        assert_eq!((window.backlog_at_start, window.backlog_at_end), (6, 6), "60 a minute for 6 s each");
        assert_eq!(window.kept_up, Some(true));
    }

    #[test]
    fn a_platform_that_does_half_of_what_arrives_is_told_by_its_backlog() {
        // Eight arrive a second, of which four are done, first come, first served.
        let spans: Vec<Span> = (0..160).map(|number| span(number * S / 8, number * S / 8 + S)).collect();
        let window = steady_window(&spans, 20 * S, false);
        assert!((window.total_per_minute() - 240.0).abs() < 20.0, "{window:?}");
        assert_eq!(window.kept_up, Some(false));
        assert!(window.backlog_at_end > window.backlog_at_start + 50, "{window:?}");
    }

    #[test]
    fn what_the_drain_finishes_of_a_backlog_is_not_throughput() {
        // Nothing is done until the piece is over: a platform that stood still.
        let spans: Vec<Span> =
            (0..20).map(|second| span(second * S, (if second < 5 { 1 } else { 40 - second }) * S)).collect();
        let window = steady_window(&spans, 20 * S, false);
        assert_eq!(window.kept_up, Some(false));
        assert!(window.total_per_minute() < 20.0, "{window:?}");
    }

    #[test]
    fn what_takes_longer_than_half_a_piece_is_not_judged() {
        let window = steady_window(&every_second(|_| 15 * S), 20 * S, false);
        assert_eq!((window.is_short, window.kept_up), (true, None));
    }

    #[test]
    fn what_failed_is_neither_backlog_nor_throughput() {
        let mut spans = every_second(|_| 2 * S);
        spans.iter_mut().step_by(2).for_each(|span| span.is_done = false);
        let window = steady_window(&spans, 20 * S, false);
        assert!((window.total_per_minute() - 30.0).abs() < 1e-9, "{window:?}");
    }

    #[test]
    fn clients_of_a_closed_loop_count_by_their_time_within_the_piece() {
        // Four clients with operations of 6 s in a piece of 20 s: 40 a minute.
        let of_client = [0, 6, 12, 18].map(|second| span(second * S, 6 * S));
        let spans: Vec<Span> = of_client.iter().copied().cycle().take(16).collect();
        let window = steady_window(&spans, 20 * S, true);
        assert!((window.total_per_minute() - 40.0).abs() < 1e-6, "{window:?}");
        assert_eq!((window.kept_up, window.backlog_at_end), (None, 4), "a closed loop waits");
    }

    #[test]
    fn a_piece_without_operations_did_nothing() {
        let window = steady_window(&[], 20 * S, false);
        assert!(window.total_per_minute() == 0.0 && window.backlog_at_end == 0, "{window:?}");
    }
}

#[cfg(test)]
mod judge_tests {
    use std::collections::BTreeMap;

    use virtbench_record::{FailureKind, OperationKind, OperationNumbers};

    use super::*;

    const S: u64 = 1_000_000_000;

    fn measured(intended: u64, not_issued: u64, unreachable: u64, outage_ns: u64) -> OperationsMeasured {
        let numbers = OperationNumbers {
            done: intended - not_issued - unreachable,
            failed: BTreeMap::from([(FailureKind::Unreachable, unreachable)]),
            ..OperationNumbers::default()
        };
        let operations = BTreeMap::from([(OperationKind::PowerOn, numbers)]);
        OperationsMeasured { intended, not_issued, outage_ns, operations, ..OperationsMeasured::default() }
    }

    fn why(load: &OperationsLoad, per_minute: Option<f64>, measured: OperationsMeasured) -> Option<String> {
        match judged(measured, load, per_minute, 10 * S) {
            Status::Incomplete { why, .. } => Some(why),
            _ => None,
        }
    }

    #[test]
    fn under_nine_tenths_issued_is_no_result_whatever_the_cause() {
        let load = OperationsLoad::Open(vec![60.0]);
        let why = |measured| why(&load, Some(60.0), measured);
        assert_eq!(why(measured(100, 5, 5, 0)), None, "nine tenths are enough");
        let outage = why(measured(100, 7, 4, 0)).unwrap();
        assert_eq!(
            outage,
            "11 of 100 operations (11 %) were not issued: 4 found nobody who answered, 7 had no VM in a state for them"
        );
        assert!(why(measured(120, 120, 0, 0)).unwrap().starts_with("120 of 120"), "an empty piece");
        assert_eq!(why(measured(0, 0, 0, 0)), None, "nothing was due");
    }

    #[test]
    fn in_a_closed_loop_the_time_counts() {
        let load = OperationsLoad::Closed(4);
        let why = |measured| why(&load, None, measured);
        assert_eq!(why(measured(1_000, 0, 4, S)), None);
        assert_eq!(why(measured(1_000, 0, 4, 4 * S)).unwrap(), "nobody answered for 4.0 s of 10.0 s");
        assert!(why(measured(0, 0, 0, 0)).unwrap().contains("no VM"), "an empty piece");
    }

    #[test]
    fn a_piece_of_a_search_in_which_nothing_was_due_is_no_result() {
        let why = why(&OperationsLoad::Max { limit_ns: 1 }, Some(3.0), measured(0, 0, 0, 0)).unwrap();
        assert!(why.contains("no operation was due"), "{why}");
    }

    #[test]
    fn too_few_vms_tell_a_search_that_a_rate_is_too_high_and_an_outage_tells_nothing() {
        let load = OperationsLoad::Max { limit_ns: 1 };
        assert_eq!(why(&load, Some(60.0), measured(100, 60, 5, 0)), None);
        assert!(why(&load, Some(60.0), measured(100, 0, 11, 0)).is_some());
        assert!(why(&load, Some(60.0), measured(100, 60, 5, 4 * S)).is_some());
    }
}

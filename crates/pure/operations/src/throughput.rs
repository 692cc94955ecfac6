//! How many operations a platform does in a minute, while it is in a steady state.
//!
//! A piece begins with nothing in flight and ends with a drain in which nothing starts. Neither is the platform's steady state, so
//! neither counts. In an open loop, completions are counted from the moment on at which as many operations can be in flight as the
//! load keeps there: Little's law, in flight = throughput x latency. In a closed loop always as many are in flight, and each
//! operation counts by the share of its time that lies within the piece, which is Little's law with a constant number in flight.

use std::collections::BTreeMap;
use std::ops::Range;

use virtbench_record::{OperationKind, SteadyWindow};

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

/// What a piece of `length_ns` nanoseconds did in its steady state. `is_closed` says that operations start when others end.
#[must_use]
pub fn steady_window(spans: &[Span], length_ns: u64, is_closed: bool) -> SteadyWindow {
    // Those that start early wait for no backlog of this piece's own.
    let (early, late) =
        (sorted_latencies(spans, 0..length_ns / 4), sorted_latencies(spans, length_ns / 4 * 3..length_ns));
    let early_ns = percentile(&early, 95);
    let grows = percentile(&late, 50) as f64 > 1.5 * percentile(&early, 50) as f64;
    let (from_ns, until_ns) = (if is_closed { 0 } else { early_ns.min(length_ns / 2) }, length_ns);
    let in_flight = |at_ns: u64| {
        let open = |span: &&Span| span.intended_ns <= at_ns && span.ended_ns > at_ns;
        spans.iter().filter(open).count() as u64
    };
    let mut done: BTreeMap<OperationKind, f64> = BTreeMap::new();
    for span in spans.iter().filter(|span| span.is_done) {
        let share = if is_closed {
            let within = span.ended_ns.min(until_ns).saturating_sub(span.intended_ns);
            within as f64 / span.latency_ns().max(1) as f64
        } else {
            f64::from(u8::from(span.ended_ns > from_ns && span.ended_ns <= until_ns))
        };
        *done.entry(span.kind).or_default() += share;
    }
    let minutes = (until_ns - from_ns).max(1) as f64 / 60e9;
    let starts = spans.iter().filter(|span| span.intended_ns > from_ns && span.intended_ns <= until_ns);
    SteadyWindow {
        from_ns,
        until_ns,
        intended: starts.count() as u64,
        backlog_at_start: in_flight(from_ns),
        backlog_at_end: in_flight(until_ns),
        is_short: !is_closed && early_ns > length_ns / 2 && !grows,
        per_minute: done.into_iter().map(|(kind, count)| (kind, count / minutes)).collect(),
    }
}

/// Latencies of operations that were to start within these nanoseconds.
fn sorted_latencies(spans: &[Span], starts: Range<u64>) -> Vec<u64> {
    let within = spans.iter().filter(|span| starts.contains(&span.intended_ns));
    let mut latencies: Vec<u64> = within.map(Span::latency_ns).collect();
    latencies.sort_unstable();
    latencies
}

/// 0 where there are none.
fn percentile(sorted: &[u64], percent: usize) -> u64 {
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0)
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
        assert!((window.total_per_minute() - 60.0).abs() < 5.0, "{window:?}");
        assert_eq!((window.backlog_at_start, window.backlog_at_end), (6, 6), "60 a minute for 6 s each");
        assert_eq!(window.kept_up(), Some(true));
    }

    #[test]
    fn a_platform_that_does_half_of_what_arrives_is_told_by_its_backlog() {
        // Eight arrive a second, of which four are done, first come, first served.
        let spans: Vec<Span> = (0..160).map(|number| span(number * S / 8, number * S / 8 + S)).collect();
        let window = steady_window(&spans, 20 * S, false);
        assert!((window.total_per_minute() - 240.0).abs() < 20.0, "{window:?}");
        assert_eq!(window.kept_up(), Some(false));
    }

    #[test]
    fn what_takes_longer_than_half_a_piece_is_not_judged() {
        let window = steady_window(&every_second(|_| 15 * S), 20 * S, false);
        assert_eq!((window.is_short, window.kept_up()), (true, None));
    }

    #[test]
    fn clients_of_a_closed_loop_count_by_their_time_within_the_piece() {
        // Four clients with operations of 6 s in a piece of 20 s: 40 a minute.
        let of_client = [0, 6, 12, 18].map(|second| span(second * S, 6 * S));
        let spans: Vec<Span> = of_client.iter().copied().cycle().take(16).collect();
        let window = steady_window(&spans, 20 * S, true);
        assert!((window.total_per_minute() - 40.0).abs() < 1e-6, "{window:?}");
    }

    #[test]
    fn a_piece_without_operations_did_nothing() {
        let window = steady_window(&[], 20 * S, false);
        assert!(window.total_per_minute() == 0.0 && window.backlog_at_end == 0, "{window:?}");
    }
}

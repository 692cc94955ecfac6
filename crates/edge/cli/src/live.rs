//! A load as it runs: IOPS, bandwidth and a heat map of latency, in the terminal.
//!
//! ```text
//!        61,234 IOPS      250.8 MB/s      12 s
//!  IOPS |▅▇█▇▇▆
//!  MB/s |▅▇█▇▇▆
//! 1.0ms |.  :
//! 524us |::.+:.
//! 262us |#@#@@#
//! ```
//!
//! Time runs to the right, one column a sample; the newest column is the last. A row of the heat map
//! is a factor of two of latency. The darker a cell, the larger its share of that column's operations.
//! Rendering is a function from samples to text, so it needs no terminal to be tested; plain lines
//! that are drawn over again need no further library than `console`, which the progress bars bring.

use std::collections::VecDeque;
use std::io;

use console::Term;

/// Latency buckets: bucket `i` counts latencies from 2^i up to 2^(i+1) ns; the last also all longer.
pub const BUCKETS: usize = 40;
/// The most columns kept.
const MOST_COLUMNS: usize = 200;
/// The most rows of the heat map: a factor of 4096 between the quickest and the slowest shown.
const MOST_ROWS: usize = 12;
/// Shares of a column's operations from which a cell is drawn with each of these.
const SHADES: [(f64, char); 6] = [(0.5, '@'), (0.25, '#'), (0.1, '+'), (0.02, ':'), (0.001, '.'), (0.0, '`')];
/// Heights of a bar in one line.
const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// What a running load has done since the sample before.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveSample {
    /// Time since measuring or ramp-up began, in nanoseconds.
    pub elapsed_ns: u64,
    /// Operations completed since the last sample.
    pub operations: u64,
    /// Bytes they moved.
    pub bytes: u64,
    /// Their latencies, by [`bucket_of`].
    pub latency_buckets: [u64; BUCKETS],
}

/// The bucket of a latency.
#[must_use]
pub fn bucket_of(latency_ns: u64) -> usize {
    (latency_ns.max(1).ilog2() as usize).min(BUCKETS - 1)
}

/// The samples of a load, as far as they fit a screen.
#[derive(Debug, Default)]
pub struct LiveView {
    columns: VecDeque<Column>,
}

/// One sample, as rates.
#[derive(Debug)]
struct Column {
    elapsed_ns: u64,
    iops: f64,
    bytes_per_second: f64,
    buckets: [u64; BUCKETS],
}

impl LiveView {
    /// Takes in a sample; one that is no later than the last is passed over.
    pub fn add(&mut self, sample: &LiveSample) {
        let before_ns = self.columns.back().map_or(0, |column| column.elapsed_ns);
        let Some(passed_ns) = sample.elapsed_ns.checked_sub(before_ns).filter(|ns| *ns > 0) else { return };
        let seconds = passed_ns as f64 / 1e9;
        if self.columns.len() == MOST_COLUMNS {
            self.columns.pop_front();
        }
        self.columns.push_back(Column {
            elapsed_ns: sample.elapsed_ns,
            iops: sample.operations as f64 / seconds,
            bytes_per_second: sample.bytes as f64 / seconds,
            buckets: sample.latency_buckets,
        });
    }

    /// The view in lines of at most `width` characters.
    #[must_use]
    pub fn render(&self, width: usize) -> Vec<String> {
        let Some(last) = self.columns.back() else { return vec!["waiting for the first operations".into()] };
        let room = width.saturating_sub(9).clamp(1, MOST_COLUMNS);
        let shown = self.columns.len().min(room);
        let columns: Vec<&Column> = self.columns.iter().skip(self.columns.len() - shown).collect();
        let mut lines = vec![cut(
            format!(
                "{:>14.0} IOPS {:>12.1} MB/s {:>8.0} s",
                last.iops,
                last.bytes_per_second / 1e6,
                last.elapsed_ns as f64 / 1e9
            ),
            width,
        )];
        lines.push(cut(format!("{:>7} |{}", "IOPS", bars(columns.iter().map(|c| c.iops))), width));
        lines
            .push(cut(format!("{:>7} |{}", "MB/s", bars(columns.iter().map(|c| c.bytes_per_second))), width));
        lines.extend(heat_map(&columns).into_iter().map(|line| cut(line, width)));
        lines
    }
}

/// A line of bars, the highest value of all reaching the top.
fn bars(values: impl Iterator<Item = f64> + Clone) -> String {
    let most = values.clone().fold(0.0, f64::max);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // 0 to 7
    let bar = |value: f64| {
        if value <= 0.0 { ' ' } else { BARS[((value / most * 8.0).ceil() as usize).clamp(1, 8) - 1] }
    };
    values.map(bar).collect()
}

/// The heat map, slow rows first. Where there are more rows than fit, the quickest are left out:
/// slow operations are few, and they are what one looks for.
fn heat_map(columns: &[&Column]) -> Vec<String> {
    let used = |bucket: &usize| columns.iter().any(|column| column.buckets[*bucket] > 0);
    let (Some(first), Some(last)) = ((0..BUCKETS).find(used), (0..BUCKETS).rev().find(used)) else {
        return Vec::new();
    };
    let first = first.max((last + 1).saturating_sub(MOST_ROWS));
    let row = |bucket: usize| {
        let cells: String = columns.iter().map(|column| shade(column, bucket)).collect();
        format!("{:>7} |{}", label(1u64 << bucket), cells.trim_end())
    };
    (first..=last).rev().map(row).collect()
}

fn shade(column: &Column, bucket: usize) -> char {
    let all: u64 = column.buckets.iter().sum();
    let share = column.buckets[bucket] as f64 / all.max(1) as f64;
    SHADES.iter().find(|(least, _)| share > *least).map_or(' ', |(_, shade)| *shade)
}

/// A power of two of nanoseconds, for people.
fn label(ns: u64) -> String {
    match ns {
        ns if ns >= 1 << 30 => format!("{:.1} s", ns as f64 / 1e9),
        ns if ns >= 1 << 20 => format!("{:.1}ms", ns as f64 / 1e6),
        ns if ns >= 1 << 10 => format!("{:.0}us", ns as f64 / 1e3),
        ns => format!("{ns}ns"),
    }
}

fn cut(line: String, width: usize) -> String {
    if line.chars().count() <= width { line } else { line.chars().take(width).collect() }
}

/// Draws a view over its last state, on stderr so that results can be redirected.
pub struct LiveScreen {
    terminal: Term,
    view: LiveView,
    drawn_lines: usize,
}

impl LiveScreen {
    /// A screen on stderr; `None` where that is no terminal.
    #[must_use]
    pub fn open() -> Option<Self> {
        let terminal = Term::buffered_stderr();
        terminal.is_term().then(|| Self { terminal, view: LiveView::default(), drawn_lines: 0 })
    }

    /// Takes in a sample and draws.
    ///
    /// # Errors
    /// The terminal is gone.
    pub fn show(&mut self, sample: &LiveSample) -> io::Result<()> {
        self.view.add(sample);
        let (rows, columns) = self.terminal.size();
        // Lines that scrolled off cannot be drawn over.
        let mut lines = self.view.render(usize::from(columns).saturating_sub(1));
        lines.truncate(usize::from(rows).saturating_sub(1).max(1));
        self.terminal.clear_last_lines(self.drawn_lines)?;
        for line in &lines {
            self.terminal.write_line(line)?;
        }
        self.drawn_lines = lines.len();
        self.terminal.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(second: u64, operations: u64, latency_ns: u64) -> LiveSample {
        let mut latency_buckets = [0; BUCKETS];
        latency_buckets[bucket_of(latency_ns)] = operations;
        LiveSample {
            elapsed_ns: second * 1_000_000_000,
            operations,
            bytes: operations * 4096,
            latency_buckets,
        }
    }

    #[test]
    fn buckets_are_powers_of_two() {
        assert_eq!([0, 1, 2, 3, 4, 1023, 1024].map(bucket_of), [0, 0, 1, 1, 2, 9, 10]);
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_view_shows_rates_and_where_latency_lies() {
        let mut view = LiveView::default();
        view.add(&sample(1, 1_000, 100_000));
        view.add(&sample(2, 500, 3_000_000));
        let lines = view.render(40);
        assert!(lines[0].contains("500 IOPS") && lines[0].contains("2.0 MB/s"), "{lines:#?}");
        assert!(lines[1].ends_with("IOPS |█▄"), "{lines:#?}");
        assert_eq!(lines[3], "  2.1ms | @");
        assert_eq!(lines.last().map(String::as_str), Some("   66us |@"), "{lines:#?}");
        assert_eq!(lines.len(), 3 + 6);
    }

    #[test]
    fn few_slow_operations_are_still_seen() {
        let mut one = sample(1, 100_000, 60_000);
        one.latency_buckets[bucket_of(90_000_000)] = 1;
        let mut view = LiveView::default();
        view.add(&one);
        assert!(view.render(40)[3].ends_with("|`"), "{:#?}", view.render(40));
    }

    #[test]
    fn time_that_stands_still_and_stalls_are_borne() {
        let mut view = LiveView::default();
        assert_eq!(view.render(40), ["waiting for the first operations"]);
        view.add(&sample(1, 0, 1));
        view.add(&sample(1, 5, 1));
        assert_eq!(view.columns.len(), 1);
        assert_eq!(view.render(40).len(), 3);
    }

    proptest! {
        #[test]
        fn no_samples_overflow_the_screen(
            samples in prop::collection::vec((0u64..1 << 50, 0u64..1 << 40, any::<u64>()), 0..300),
            width in 0usize..300,
        ) {
            let mut view = LiveView::default();
            for (second, operations, latency_ns) in samples {
                let elapsed_ns = second;
                view.add(&LiveSample { elapsed_ns, ..sample(0, operations, latency_ns) });
            }
            prop_assert!(view.columns.len() <= MOST_COLUMNS);
            let lines = view.render(width);
            prop_assert!(lines.len() <= 3 + MOST_ROWS);
            if lines.len() > 1 {
                prop_assert!(lines.iter().all(|line| line.chars().count() <= width));
            }
        }
    }
}

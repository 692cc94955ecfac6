//! Progress with time left, on a terminal; silence elsewhere.

use std::time::Duration;

use virtbench_workload::AccessSpec;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{log, say};

/// How often what has no length moves.
const TURN: Duration = Duration::from_millis(200);

/// A bar over `length` units. Drawn on stderr, and only if that is a terminal.
pub fn bar(length: u64, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg}  [{wide_bar}] {percent:>3} %  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    shown(ProgressBar::new(length)).with_style(style).with_message(what.to_owned())
}

/// A bar and lines of what happens would write over each other.
fn shown(bar: ProgressBar) -> ProgressBar {
    if log::is_shown() || say::is_for_machines() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

/// A bar that follows the clock for `length_ns`; one without a length where nobody knows it.
pub fn timer(length_ns: Option<u64>, what: &str) -> ProgressBar {
    let Some(length_ns) = length_ns else {
        return shown(ProgressBar::new_spinner()).with_message(what.to_owned());
    };
    let bar = bar(length_ns / 1_000_000, what);
    bar.set_style(
        ProgressStyle::with_template("{msg}  [{wide_bar}] {prefix}")
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("=> "),
    );
    bar
}

/// Moves a [`timer`] to where it should be.
pub fn tick(bar: &ProgressBar, elapsed: Duration) {
    let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let Some(length_ms) = bar.length() else { return bar.tick() };
    bar.set_position(elapsed_ms.min(length_ms));
    bar.set_prefix(format!("{} s left", length_ms.saturating_sub(elapsed_ms).div_ceil(1000)));
}

/// Does what takes a time that nobody knows, and shows meanwhile what that is and for how long it has lasted.
pub fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = shown(ProgressBar::new_spinner()).with_style(style).with_message(what.to_owned());
    bar.enable_steady_tick(TURN);
    let done = work();
    bar.finish_and_clear();
    done
}

/// How fast a load goes: over the last second, which is what a person can read.
#[derive(Debug)]
pub struct Pace {
    block_bytes: f64,
    since: Duration,
    operations: u64,
    words: String,
}

impl Pace {
    /// Of a load that has just begun. Bandwidth is told from the mean size of its operations.
    pub fn new(access: &AccessSpec) -> Self {
        let weights = access.lines.iter().map(|line| line.share_percent * f64::from(line.burst));
        let bytes = weights.clone().zip(&access.lines).map(|(weight, line)| weight * line.size_bytes as f64);
        let block_bytes = bytes.sum::<f64>() / weights.sum::<f64>().max(f64::MIN_POSITIVE);
        Self { block_bytes, since: Duration::ZERO, operations: 0, words: "measuring".into() }
    }

    /// The pace in words, when so many operations have completed after so long.
    pub fn words(&mut self, elapsed: Duration, operations: u64) -> &str {
        let seconds = elapsed.saturating_sub(self.since).as_secs_f64();
        if seconds >= 1.0 {
            let iops = operations.saturating_sub(self.operations) as f64 / seconds;
            self.words = format!("{iops:.0} IOPS, {:.1} MB/s", iops * self.block_bytes / 1e6);
            (self.since, self.operations) = (elapsed, operations);
        }
        &self.words
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_workload::AccessLine;

    #[test]
    fn a_pace_is_that_of_the_last_second() {
        let line = |size, share_percent| AccessLine { share_percent, ..AccessLine::new(size, 50.0, 100.0) };
        let mut pace = Pace::new(&AccessSpec { lines: vec![line(4000, 75.0), line(8000, 25.0)] });
        assert_eq!(pace.words(Duration::from_millis(500), 900), "measuring");
        assert_eq!(pace.words(Duration::from_secs(1), 1000), "1000 IOPS, 5.0 MB/s");
        assert_eq!(pace.words(Duration::from_millis(1900), 9000), "1000 IOPS, 5.0 MB/s");
        assert_eq!(pace.words(Duration::from_secs(3), 5000), "2000 IOPS, 10.0 MB/s");
    }
}

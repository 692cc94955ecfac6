//! Progress with time left, on a terminal; silence elsewhere.
//!
//! One look for all: what is done, a bar, how much of it and the time left; where its length is unknown, what is done and
//! for how long already. `--progress lines` has what lasts for long say lines in place of it, for the log of a job.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use virtbench_units::format_duration_ns;
use virtbench_workload::AccessSpec;

use crate::say::tell;
use crate::{log, say};

/// How often what moves by itself is drawn.
const TURN: Duration = Duration::from_millis(200);

/// A bar over `length` units. Drawn on stderr, and only if that is a terminal.
pub fn bar(length: u64, what: &str) -> ProgressBar {
    shown(ProgressBar::new(length)).with_style(in_percent()).with_message(what.to_owned())
}

/// Gives a [`spinner`] a length, once it is known.
pub fn lengthen(bar: &ProgressBar, length: u64, what: &'static str) {
    bar.set_style(in_percent());
    bar.set_message(what);
    bar.set_length(length);
    bar.reset_eta();
}

/// How much is done, and the time left once that can be told.
fn in_percent() -> ProgressStyle {
    with_bar("{percent:>3} %  {left}").with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
        let is_known = state.pos() > 0 && state.len().is_some_and(|length| length > 0);
        let _ = out.write_str(&if is_known { left(state.eta()) } else { String::new() });
    })
}

/// A bar over pieces of which each takes a while: it is drawn at once, and its time left goes down between them.
pub fn counted(pieces: usize, what: &str) -> ProgressBar {
    let bar = bar(pieces as u64, what);
    bar.tick();
    bar.enable_steady_tick(TURN);
    bar
}

fn with_bar(behind: &str) -> ProgressStyle {
    ProgressStyle::with_template(&format!("{{msg}}  [{{wide_bar}}] {behind}"))
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}

/// `1m 20s left`, to the second.
fn left(time: Duration) -> String {
    let seconds = time.as_millis().div_ceil(1000).min(1 << 32);
    format!("{} left", format_duration_ns(u64::try_from(seconds).unwrap_or(0) * 1_000_000_000))
}

/// A bar and lines of what happens would write over each other.
fn shown(bar: ProgressBar) -> ProgressBar {
    if log::is_shown() || say::is_for_machines() || say::is_in_lines() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar
}

/// A bar that follows the clock for `length_ns`; one without a length where that is unknown.
pub fn timer(length_ns: Option<u64>, what: &str) -> ProgressBar {
    let Some(length_ns) = length_ns else {
        return shown(ProgressBar::new_spinner()).with_message(what.to_owned());
    };
    let bar = bar(length_ns / 1_000_000, what);
    bar.set_style(with_bar("{prefix}"));
    bar
}

/// Moves a [`timer`] to where it should be.
pub fn tick(bar: &ProgressBar, elapsed: Duration) {
    let elapsed_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
    let Some(length_ms) = bar.length() else { return bar.tick() };
    bar.set_position(elapsed_ms.min(length_ms));
    bar.set_prefix(left(Duration::from_millis(length_ms.saturating_sub(elapsed_ms))));
}

/// Says what is done and for how long already, until it is finished, which takes an unknown time.
pub fn spinner(what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    let bar = shown(ProgressBar::new_spinner()).with_style(style).with_message(what.to_owned());
    bar.tick();
    bar.enable_steady_tick(TURN);
    bar
}

/// One of the pieces of a [`counted`] bar is done, and came to this; a line of its own where lines are wanted.
pub fn step(bar: &ProgressBar, what: String) {
    if say::is_in_lines() {
        tell!("{what}");
    }
    bar.set_message(what);
    bar.inc(1);
}

/// Does what takes an unknown time, with a [`spinner`].
pub fn during<T>(what: &str, work: impl FnOnce() -> T) -> T {
    let bar = spinner(what);
    let done = work();
    bar.finish_and_clear();
    done
}

/// Does what takes `length_ns`.
pub fn timed<T>(length_ns: u64, what: &str, work: impl FnOnce() -> T) -> T {
    let (bar, begun, is_done) = (timer(Some(length_ns), what), Instant::now(), AtomicBool::new(false));
    let done = thread::scope(|scope| {
        let ticking = scope.spawn(|| {
            while !is_done.load(Ordering::Relaxed) {
                tick(&bar, begun.elapsed());
                thread::park_timeout(TURN);
            }
        });
        let done = work();
        is_done.store(true, Ordering::Relaxed);
        ticking.thread().unpark();
        done
    });
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
    use indicatif::TermLike;
    use std::io;
    use std::sync::{Arc, Mutex};
    use virtbench_workload::AccessLine;

    /// A terminal of one line.
    #[derive(Debug, Clone, Default)]
    struct Line(Arc<Mutex<String>>);

    impl Line {
        fn of(bar: &ProgressBar) -> Self {
            let line = Self::default();
            bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(line.clone())));
            line
        }

        fn text(&self) -> String {
            self.0.lock().unwrap().trim().to_owned()
        }
    }

    impl TermLike for Line {
        fn width(&self) -> u16 {
            60
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> io::Result<()> {
            self.write_str(text)
        }
        fn write_str(&self, text: &str) -> io::Result<()> {
            self.0.lock().unwrap().push_str(text);
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            self.0.lock().unwrap().clear();
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_kind_says_what_is_done_and_how_long_it_takes_still_or_already() {
        let of_pieces = bar(4, "pieces");
        let line = Line::of(&of_pieces);
        of_pieces.tick();
        let text = line.text();
        assert!(text.starts_with("pieces  [") && text.ends_with("0 %"), "unknown yet: {text}");
        of_pieces.set_position(1);
        of_pieces.tick();
        let text = line.text();
        assert!(text.contains("25 %") && text.ends_with("left"), "{text}");
        of_pieces.finish_and_clear();
        assert_eq!(line.text(), "", "nothing stays behind");

        let of_time = timer(Some(100_000_000_000), "a load");
        let line = Line::of(&of_time);
        tick(&of_time, Duration::from_millis(20_300));
        of_time.tick();
        let text = line.text();
        assert!(text.starts_with("a load  [==") && text.ends_with("] 1m 20s left"), "{text}");

        let open = spinner("reading");
        let line = Line::of(&open);
        // It is drawn by a thread of its own until then.
        open.disable_steady_tick();
        open.tick();
        let text = line.text();
        assert!(text.contains("reading  ") && text.ends_with('s'), "{text}");
        open.finish_and_clear();
        assert_eq!((during("x", || 3), timed(1, "y", || 4)), (3, 4));
    }

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

#[cfg(all(test, feature = "full"))]
#[path = "progress_tests.rs"]
mod commands;

//! Progress with time left, on a terminal; silence elsewhere.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `length` units. Drawn on stderr, and only if that is a terminal.
pub fn bar(length: u64, what: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg}  [{wide_bar}] {percent:>3} %  {eta} left")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ");
    ProgressBar::new(length).with_style(style).with_message(what.to_owned())
}

/// A bar that follows the clock for `length_ns`; one without a length where nobody knows it.
pub fn timer(length_ns: Option<u64>, what: &str) -> ProgressBar {
    let Some(length_ns) = length_ns else {
        return ProgressBar::new_spinner().with_message(what.to_owned());
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

//! A latency heat map as lines of text: time across, latency up, shade for the share of operations.

use virtbench_engine::{LIVE_BUCKETS, LiveSample};

/// The most rows of a map: five decades of latency.
const MAX_ROWS: usize = 16;
/// Columns before the map itself: the latency of a row and a line.
const MARGIN: usize = 9;

/// What completed in a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// When the while ended, in seconds since the load began.
    pub end_s: f64,
    /// What completed in it.
    pub sample: LiveSample,
}

/// The map of the latest columns that fit `width` x `height` characters, its time axis included; nothing
/// if none fit or nothing completed. A row is a bucket of latencies, labelled with where it begins;
/// where there are more buckets than rows, the lowest row takes all that are faster.
pub fn heat_map(columns: &[Column], width: usize, height: usize) -> Vec<String> {
    let rows = height.saturating_sub(1).min(MAX_ROWS);
    if rows == 0 {
        return Vec::new();
    }
    let shown = &columns[columns.len().saturating_sub(width.saturating_sub(MARGIN))..];
    let is_busy = |bucket: &usize| shown.iter().any(|column| column.sample.latency[*bucket] > 0);
    let (Some(fastest), Some(slowest)) = ((0..LIVE_BUCKETS).find(is_busy), (0..LIVE_BUCKETS).rfind(is_busy))
    else {
        return Vec::new();
    };
    let bottom = fastest.max((slowest + 1).saturating_sub(rows));
    let mut lines: Vec<String> = (bottom..=slowest)
        .rev()
        .map(|bucket| {
            let first = if bucket == bottom { 0 } else { bucket };
            let cells = shown.iter().map(|column| {
                let total: u64 = column.sample.latency.iter().sum();
                shade(column.sample.latency[first..=bucket].iter().sum(), total)
            });
            // The lowest row may take faster ones as well.
            let sign = if bucket == bottom && fastest < bottom { '<' } else { ' ' };
            format!("{sign}{:>6} |{}", duration(1 << bucket), cells.collect::<String>())
        })
        .collect();
    lines.push(axis(shown));
    lines
}

/// The times of the first and the last column, under them.
fn axis(shown: &[Column]) -> String {
    let ends = [shown.first(), shown.last()].map(|column| column.map_or(0.0, |column| column.end_s));
    let [first, last] = ends.map(|end_s| format!("{end_s:.1} s"));
    let gap = shown.len().saturating_sub(first.len());
    let mut line = format!("{:MARGIN$}{first}", "");
    if gap > last.len() {
        line += &format!("{last:>gap$}");
    }
    line
}

/// The shade for `part` of `total`: nothing, a dot below 1 %, then below 10 %, 30 %, 60 %, and above.
fn shade(part: u64, total: u64) -> char {
    match 100.0 * part as f64 / total.max(1) as f64 {
        0.0 => ' ',
        percent if percent < 1.0 => '·',
        percent if percent < 10.0 => '░',
        percent if percent < 30.0 => '▒',
        percent if percent < 60.0 => '▓',
        _ => '█',
    }
}

/// Nanoseconds in six characters or fewer.
pub fn duration(ns: u64) -> String {
    let (value, unit) = match ns as f64 {
        ns if ns < 1e3 => (ns, "ns"),
        ns if ns < 1e6 => (ns / 1e3, "us"),
        ns if ns < 1e9 => (ns / 1e6, "ms"),
        ns => (ns / 1e9, "s"),
    };
    let digits = usize::from(value < 10.0 && unit != "ns");
    format!("{value:.digits$} {unit}")
}

/// The latency that a share of the operations stay below, in nanoseconds: the upper end of the bucket
/// in which the share is reached. Nothing where nothing completed.
pub fn quantile_ns(sample: &LiveSample, share: f64) -> Option<u64> {
    let total: u64 = sample.latency.iter().sum();
    let mut below = 0;
    (0..LIVE_BUCKETS)
        .find(|bucket| {
            below += sample.latency[*bucket];
            below > 0 && below as f64 >= share * total as f64
        })
        .map(|bucket| 2 << bucket)
}

#[cfg(test)]
#[path = "heat_tests.rs"]
mod tests;

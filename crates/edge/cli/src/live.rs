//! `--live`: what a load does while it runs.
//!
//! ```text
//! Control::live --sample--> history --heat--> lines --screen--> terminal
//!                               \--a line a second--> stderr, where that is no terminal
//! ```
//!
//! The screen is lines of text that stay in place on a terminal; remarks that come meanwhile are written above them.
//!
//! Each change is one write that ends with the cursor below the lines. No mode of the terminal is
//! changed and the cursor is not hidden: there is nothing to restore, whatever ends the process.

use std::collections::VecDeque;
use std::time::Duration;

use console::Term;
use virtbench_engine::{Control, LIVE_BUCKETS, LiveSample};
use virtbench_workload::LoadSpec;

use crate::interrupt;
use crate::say::{self, tell};

/// How often a terminal is drawn on.
const FRAME: Duration = Duration::from_millis(250);

/// How often a line is printed elsewhere.
const LINE: Duration = Duration::from_secs(1);

/// Rates are those of so many seconds.
const RATE_S: f64 = 1.0;

/// The most columns kept: wider than any terminal.
const MAX_COLUMNS: usize = 1024;

/// Lines above the heat map.
const HEAD: usize = 3;

/// What is shown of a load while it runs, on stderr.
pub struct LiveView {
    screen: Option<Screen>,
    plan: LoadLength,
    next: Duration,
    last: LiveSample,
    columns: VecDeque<Column>,
}

impl LiveView {
    /// A view of this load.
    pub fn new(spec: &LoadSpec) -> Self {
        Self {
            screen: Screen::stderr(),
            plan: LoadLength::new(spec),
            next: Duration::ZERO,
            last: LiveSample::default(),
            columns: VecDeque::new(),
        }
    }

    /// Takes a sample and shows it, if it is time to.
    pub fn look(&mut self, control: &Control, elapsed: Duration) {
        if elapsed < self.next || interrupt::requested() {
            return;
        }
        self.next = elapsed + if self.screen.is_some() { FRAME } else { LINE };
        let now = control.live();
        let column = Column { end_s: elapsed.as_secs_f64(), sample: now.since(&self.last) };
        let state = self.plan.state(elapsed, control.completed());
        self.last = now;
        if self.columns.len() == MAX_COLUMNS {
            self.columns.pop_front();
        }
        self.columns.push_back(column);
        let columns = self.columns.make_contiguous();
        match &mut self.screen {
            Some(screen) => {
                let (width, height) = screen.size();
                screen.draw(&frame(&state, &self.last, columns, width, height));
            }
            // The first sample is of no time at all.
            None if columns.len() > 1 => tell!("{}", line(&state, columns)),
            None => {}
        }
    }
}

impl Drop for LiveView {
    /// Makes room for the results. After a signal the lines stay: what it has printed stands below them.
    fn drop(&mut self) {
        if let Some(screen) = self.screen.as_mut().filter(|_| !interrupt::requested()) {
            screen.clear();
        }
    }
}

/// What is known of a load's length.
struct LoadLength {
    ramp_ns: u64,
    expected_ns: Option<u64>,
    operations: u64,
}

impl LoadLength {
    fn new(spec: &LoadSpec) -> Self {
        let operations = spec.trace.as_ref().map_or(0, |trace| trace.operations);
        Self { ramp_ns: spec.ramp_ns, expected_ns: spec.expected_ns(), operations }
    }

    /// How far the load is, in words.
    fn state(&self, elapsed: Duration, completed: u64) -> String {
        let elapsed_s = elapsed.as_secs_f64();
        let what = if elapsed_s < self.ramp_ns as f64 / 1e9 { "ramp-up" } else { "measuring" };
        match self.expected_ns {
            Some(ns) if ns as f64 / 1e9 > elapsed_s => {
                format!("{what}, {elapsed_s:.1} s, {:.1} s left", ns as f64 / 1e9 - elapsed_s)
            }
            Some(_) => format!("finishing, {elapsed_s:.1} s"),
            None => {
                let percent = 100.0 * completed as f64 / self.operations.max(1) as f64;
                format!(
                    "{what}, {elapsed_s:.1} s, {completed} of {} operations ({percent:.0} %)",
                    self.operations
                )
            }
        }
    }
}

/// IOPS and MB/s over the last [`RATE_S`] or so, in words. The first column ends where time begins.
fn rates(columns: &[Column]) -> String {
    let end_s = columns.last().map_or(0.0, |column| column.end_s);
    let begin = columns.iter().rposition(|column| column.end_s <= end_s - RATE_S).unwrap_or(0);
    let begin_s = columns.get(begin).map_or(0.0, |column| column.end_s);
    let recent = columns.get(begin + 1..).unwrap_or_default();
    let per_second = |of: fn(&LiveSample) -> u64| {
        let sum: u64 = recent.iter().map(|column| of(&column.sample)).sum();
        sum as f64 / (end_s - begin_s).max(1e-3)
    };
    let (iops, bytes) = (per_second(|sample| sample.operations), per_second(|sample| sample.bytes));
    format!("{iops:.0} IOPS, {:.2} MB/s", bytes / 1e6)
}

/// What stays in place on a terminal of `width` x `height`.
fn frame(state: &str, total: &LiveSample, columns: &[Column], width: usize, height: usize) -> Vec<String> {
    let mut lines = vec![
        state.to_owned(),
        format!("{}; {} operations, {} errors", rates(columns), total.operations, total.errors),
    ];
    let map = heat_map(columns, width, height.saturating_sub(HEAD));
    if !map.is_empty() {
        lines.push("latency (shade: share of operations, · <1 ░ <10 ▒ <30 ▓ <60 █ >=60 %)".into());
        lines.extend(map);
    }
    lines
}

/// The same in one line.
fn line(state: &str, columns: &[Column]) -> String {
    let sample = columns.last().map(|column| column.sample.clone()).unwrap_or_default();
    let latency = [0.5, 0.99].map(|share| quantile_ns(&sample, share).map_or("-".into(), duration));
    let [half, most] = latency;
    format!("{state}: {}, latency p50 < {half}, p99 < {most}, {} errors", rates(columns), sample.errors)
}

/// The most rows of a map: five decades of latency.
const MAX_ROWS: usize = 16;

/// Columns before the map itself: the latency of a row and a line.
const MARGIN: usize = 9;

/// What completed in a while.
#[derive(Debug, Clone, PartialEq)]
struct Column {
    /// When the while ended, in seconds since the load began.
    pub end_s: f64,
    /// What completed in it.
    pub sample: LiveSample,
}

/// The map of the latest columns that fit `width` x `height` characters, its time axis included; nothing
/// if none fit or nothing completed. A row is a bucket of latencies, labelled with where it begins;
/// where there are more buckets than rows, the lowest row takes all that are faster.
fn heat_map(columns: &[Column], width: usize, height: usize) -> Vec<String> {
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
fn duration(ns: u64) -> String {
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
fn quantile_ns(sample: &LiveSample, share: f64) -> Option<u64> {
    let total: u64 = sample.latency.iter().sum();
    let mut below = 0;
    (0..LIVE_BUCKETS)
        .find(|bucket| {
            below += sample.latency[*bucket];
            below > 0 && below as f64 >= share * total as f64
        })
        .map(|bucket| 2 << bucket)
}

/// Lines at the bottom of a terminal.
struct Screen {
    term: Term,
    /// Characters of each line that is there now.
    widths: Vec<usize>,
}

impl Screen {
    /// Nothing yet, on stderr; `None` if that is no terminal.
    pub fn stderr() -> Option<Self> {
        let term = Term::stderr();
        term.is_term().then(|| {
            say::hold();
            Self { term, widths: Vec::new() }
        })
    }

    /// How much can be drawn, in characters and lines: less than the terminal has by one of each, so
    /// that nothing wraps or scrolls away.
    pub fn size(&self) -> (usize, usize) {
        let (rows, columns) = self.term.size();
        let some = |size: u16, default: usize| if size == 0 { default } else { usize::from(size) };
        (some(columns, 80).saturating_sub(1), some(rows, 24).saturating_sub(1))
    }

    /// Replaces the lines. What cannot be written is lost: a load does not end for that.
    pub fn draw(&mut self, lines: &[String]) {
        let (width, height) = self.size();
        let lines: Vec<String> =
            lines.iter().take(height).map(|line| line.chars().take(width).collect()).collect();
        let mut text = self.back() + "\x1b[J";
        for remark in say::waiting() {
            text += &format!("{remark}\n");
        }
        for line in &lines {
            text += &format!("{line}\n");
        }
        let _ = self.term.write_str(&text);
        self.widths = lines.iter().map(|line| line.chars().count()).collect();
    }

    /// Removes the lines.
    pub fn clear(&mut self) {
        let _ = self.term.write_str(&(self.back() + "\x1b[J"));
        self.widths.clear();
    }

    /// What moves the cursor to the first of the lines. A terminal that has become narrower has wrapped them.
    fn back(&self) -> String {
        let columns = self.size().0 + 1;
        match self.widths.iter().map(|width| width.div_ceil(columns).max(1)).sum::<usize>() {
            0 => "\r".into(),
            up => format!("\r\x1b[{up}A"),
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        say::release();
    }
}

#[cfg(test)]
mod heat_tests;

#[cfg(test)]
mod tests {
    use virtbench_workload::{AccessLine, AccessSpec, Pace, Recording, TraceAction, TraceOp};

    use super::*;

    fn columns() -> Vec<Column> {
        let sample = |bucket: usize| {
            let mut sample = LiveSample { operations: 100, bytes: 409_600, ..LiveSample::default() };
            sample.latency[bucket] = 100;
            sample
        };
        (0u32..9).map(|i| Column { end_s: f64::from(i) / 4.0, sample: sample(16 + i as usize % 2) }).collect()
    }

    #[test]
    fn a_frame_has_rates_and_a_map() {
        let total = LiveSample { operations: 900, errors: 2, ..LiveSample::default() };
        let expected = "\
measuring, 2.0 s, 3.0 s left
400 IOPS, 1.64 MB/s; 900 operations, 2 errors
latency (shade: share of operations, · <1 ░ <10 ▒ <30 ▓ <60 █ >=60 %)
 131 us | █ █ █ █ 
  66 us |█ █ █ █ █
         0.0 s";
        let state = LoadLength { ramp_ns: 1_000_000_000, expected_ns: Some(5_000_000_000), operations: 0 };
        let state = state.state(Duration::from_secs(2), 0);
        assert_eq!(frame(&state, &total, &columns(), 80, 24).join("\n"), expected);
        assert_eq!(frame(&state, &total, &columns(), 80, 2).len(), 2);
    }

    #[test]
    fn a_line_has_rates_and_latencies() {
        let text = line("measuring, 2.0 s", &columns());
        assert_eq!(
            text,
            "measuring, 2.0 s: 400 IOPS, 1.64 MB/s, latency p50 < 131 us, p99 < 131 us, 0 errors"
        );
        assert!(line("x", &[]).contains("p50 < -"));
    }

    #[test]
    fn the_time_left_is_that_of_the_load_or_of_its_trace() {
        let spec = LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 20);
        let at = |spec: &LoadSpec, ms| LoadLength::new(spec).state(Duration::from_millis(ms), 1);
        assert_eq!(at(&spec, 500), "ramp-up, 0.5 s, 5.5 s left");
        assert_eq!(at(&spec, 7000), "finishing, 7.0 s");
        let op = |time_ns| TraceOp { time_ns, offset: 0, len: 512, action: TraceAction::Read, line: 0 };
        let replay = |pace| LoadSpec {
            ramp_ns: 0,
            trace: Some(Recording::new("t".into(), pace, vec![op(0), op(2_000_000_000)])),
            ..spec.clone()
        };
        assert_eq!(at(&replay(Pace::Speed(2.0)), 250), "measuring, 0.2 s, 0.8 s left");
        assert_eq!(at(&replay(Pace::Max), 250), "measuring, 0.2 s, 1 of 2 operations (50 %)");
    }
}

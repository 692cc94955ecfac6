//! What a workload's runs come to.

use std::collections::BTreeMap;

use virtbench_record::{Better, CommandEnd, Metric};
use virtbench_units::LatencyRecorder;

/// Figures of all runs so far.
#[derive(Debug, Default)]
pub struct Sheet {
    rows: Vec<Row>,
    error_kinds: BTreeMap<String, u64>,
    latency: LatencyRecorder,
    notes: Vec<String>,
    command: Option<CommandEnd>,
}

#[derive(Debug)]
struct Row {
    name: String,
    unit: &'static str,
    better: Better,
    samples: Vec<f64>,
}

/// The most kinds of errors that are told apart.
const MAX_KINDS: usize = 50;

impl Sheet {
    /// Adds a run's sample of a figure. Figures stand in the order in which they first came.
    pub fn sample(&mut self, name: &str, unit: &'static str, better: Better, value: f64) {
        if let Some(row) = self.rows.iter_mut().find(|row| row.name == name) {
            row.samples.push(value);
        } else {
            self.rows.push(Row { name: name.to_owned(), unit, better, samples: vec![value] });
        }
    }

    /// As [`sample`](Self::sample), of the figure that stands for the whole and is put first.
    pub fn lead(&mut self, name: &str, unit: &'static str, better: Better, value: f64) {
        self.sample(name, unit, better, value);
        if let Some(place) = self.rows.iter().position(|row| row.name == name) {
            self.rows[..=place].rotate_right(1);
        }
    }

    /// Counts operations that failed, by what went wrong.
    pub fn errors(&mut self, kind: &str, count: u64) {
        let known = self.error_kinds.contains_key(kind) || self.error_kinds.len() < MAX_KINDS;
        let kind = if known { kind } else { "others" };
        *self.error_kinds.entry(kind.to_owned()).or_default() += count;
    }

    /// Adds latencies of operations.
    pub fn latencies(&mut self, latencies: &LatencyRecorder) {
        self.latency.merge(latencies);
    }

    /// Adds something a reader should know, once.
    pub fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// How a command ended; the last run's is kept.
    #[cfg_attr(windows, allow(dead_code, reason = "no command runs there"))]
    pub(crate) fn command(&mut self, end: CommandEnd) {
        self.command = Some(end);
    }

    pub(crate) fn take_command(&mut self) -> Option<CommandEnd> {
        self.command.take()
    }

    pub(crate) fn metrics(&self) -> Vec<Metric> {
        let metric = |row: &Row| Metric::new(&row.name, row.unit, row.better, row.samples.clone());
        self.rows.iter().filter_map(metric).collect()
    }

    pub(crate) fn error_kinds(&self) -> &BTreeMap<String, u64> {
        &self.error_kinds
    }

    pub(crate) fn latency(&self) -> &LatencyRecorder {
        &self.latency
    }

    pub(crate) fn notes(&self) -> &[String] {
        &self.notes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_keep_their_order_and_the_leading_one_is_first() {
        let mut sheet = Sheet::default();
        for value in [1.0, 3.0] {
            sheet.sample("a", "B/s", Better::Higher, value);
            sheet.sample("b", "B/s", Better::Higher, value);
            sheet.lead("score", "operations/min", Better::Higher, value);
        }
        let metrics = sheet.metrics();
        let names: Vec<&str> = metrics.iter().map(|metric| metric.name.as_str()).collect();
        assert_eq!(names, ["score", "a", "b"]);
        assert!(metrics.iter().all(|metric| metric.samples == [1.0, 3.0] && metric.mean == 2.0));
    }

    #[test]
    fn kinds_of_errors_are_bounded() {
        let mut sheet = Sheet::default();
        (0..1000).for_each(|kind| sheet.errors(&kind.to_string(), 1));
        assert!(sheet.error_kinds().len() <= MAX_KINDS + 1);
        assert_eq!(sheet.error_kinds().values().sum::<u64>(), 1000);
    }
}

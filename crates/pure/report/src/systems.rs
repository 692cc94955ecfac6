//! Ways of sharing beside each other: a row for each machine as CSV, a line for each system in Markdown.

use std::fmt::Write as _;

use csv::Writer;
use virtbench_record::{Ranged, SystemFate, SystemNumbers, SystemRow, SystemVmNumbers};

use crate::rows::{CsvError, text};

/// Every machine under every system, in every repetition.
///
/// # Errors
/// The table cannot be written.
pub fn systems_csv<'a>(rows: impl IntoIterator<Item = &'a SystemRow>) -> Result<String, CsvError> {
    let mut writer = Writer::from_writer(Vec::new());
    for row in rows {
        writer.serialize(row).map_err(CsvError::from)?;
    }
    text(writer)
}

/// With one digit behind the point, whole from 100 on.
fn percent(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// As percent, with interval and range in a few characters: `6.8 (0.0 to 21.7; 0.1 to 11.4)`.
#[must_use]
pub fn ranged_percent(ranged: &Ranged) -> String {
    let span = |(low, high): (f64, f64)| format!("{} to {}", percent(low), percent(high));
    let spans: Vec<String> = [ranged.low.zip(ranged.high), ranged.least.zip(ranged.greatest)]
        .into_iter()
        .flatten()
        .map(span)
        .collect();
    match (ranged.low, spans.is_empty()) {
        (Some(_), false) => format!("{} ({})", percent(ranged.mean), spans.join("; ")),
        _ => percent(ranged.mean),
    }
}

/// In the order of [`COLUMNS`].
fn cells(vm: &SystemVmNumbers) -> [String; 12] {
    let differs =
        |ranged: Option<Ranged>| ranged.map_or_else(|| "-".to_owned(), |ranged| ranged_percent(&ranged));
    let ([a, b], [c, d]) = (vm.per_second.map(number), vm.mean_ms.map(number));
    let ([e, f], [i, j]) = (vm.simulated_mean_ms.map(number), vm.p99_ms.map(number));
    let share = vm.share_percent.map_or_else(|| "-".to_owned(), |share| format!("{share}"));
    let [g, h] = [vm.throughput_deviation, vm.response_deviation].map(differs);
    [share, a, b, g, c, d, h, i, j, e, f, differs(vm.simulated_response_deviation)]
}

/// Why there is nothing of a system, or not all.
#[must_use]
pub fn fate_in_words(system: &SystemNumbers) -> Option<String> {
    match &system.fate {
        SystemFate::Measured => None,
        SystemFate::Unavailable(why) => Some(format!("unavailable: {why}")),
        SystemFate::Failed(why) => Some(format!("failed: {why}")),
    }
}

const COLUMNS: [&str; 12] = [
    "share %",
    "alone /s",
    "beside /s",
    "differs %",
    "alone ms",
    "beside ms",
    "differs %",
    "alone p99 ms",
    "beside p99 ms",
    "sim. alone ms",
    "sim. beside ms",
    "differs %",
];

/// What stands behind `differs %`.
pub const DEVIATION_LEGEND: &str = "Differs: the mean over repetitions of |alone - beside| / alone; in brackets its 95 % interval and the \
                       least and greatest repetition.";

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"))
}

/// A table of systems to be pasted into a document.
#[must_use]
pub fn systems_markdown(compared: &[SystemNumbers]) -> String {
    let mut text =
        format!("| system | VM | {} |\n|---|---{}|\n", COLUMNS.join(" | "), "|---:".repeat(COLUMNS.len()));
    for one in compared {
        for vm in &one.vms {
            let _ = writeln!(text, "| {} | {} | {} |", one.system, vm.vm, cells(vm).join(" | "));
        }
    }
    let summaries = compared.iter().map(|one| {
        let why = fate_in_words(one).map_or_else(String::new, |why| format!("; {why}"));
        format!("- {}: {}{why}\n", one.system, one.summary)
    });
    let _ = write!(text, "\n{DEVIATION_LEGEND}\n\n{}", summaries.collect::<String>());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use virtbench_model::together::compared_system;

    fn row(vm: &str, beside_others: bool, mean_ms: f64) -> SystemRow {
        SystemRow {
            system: "none".into(),
            vm: vm.into(),
            share_percent: Some(8.0),
            beside_others,
            per_second: Some(10.0),
            mean_ms: Some(mean_ms),
            p99_ms: Some(2.0 * mean_ms),
            simulated_per_second: Some(10.0),
            ..SystemRow::default()
        }
    }

    #[test]
    fn a_table_for_a_document_has_a_line_for_each_and_says_what_lacks() {
        let rows = [row("vm1", false, 10.0), row("vm1", true, 30.0), row("vm2", true, 35.0)];
        let lacking = SystemFate::Unavailable("no root".into());
        let compared = [
            compared_system("none".into(), "no fence".into(), SystemFate::Measured, &rows),
            compared_system("blkio".into(), "throttled".into(), lacking, &[]),
        ];
        let text = systems_markdown(&compared);
        let lines: Vec<&str> = text.lines().collect();
        let cells = |line: &str| line.matches('|').count();
        assert!(lines[..4].iter().all(|line| cells(line) == 15), "{text}");
        assert_eq!(
            lines[2],
            "| none | vm1 | 8 | 10.0 | 10.0 | 0.0 | 10.0 | 30.0 | 200 | 20.0 | 60.0 | - | - | - |"
        );
        assert!(lines[3].starts_with("| none | vm2 | 8 | - | 10.0 | - | - | 35.0 | - |"), "{text}");
        assert!(lines.last().unwrap().ends_with("; unavailable: no root"), "{text}");
        let csv = systems_csv(&rows).unwrap();
        assert!(csv.starts_with("system,vm,share_percent,beside_others,"), "{csv}");
        assert_eq!(csv.lines().count(), 4);
    }

    #[test]
    fn a_deviation_has_its_interval_and_range_where_they_are_known() {
        let whole =
            Ranged { mean: 6.84, low: Some(0.0), high: Some(121.7), least: Some(0.1), greatest: Some(11.4) };
        assert_eq!(ranged_percent(&whole), "6.8 (0.0 to 122; 0.1 to 11.4)");
        assert_eq!(ranged_percent(&Ranged { low: None, high: None, ..whole }), "6.8");
    }
}

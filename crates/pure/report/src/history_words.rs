//! A change from run to run, in words.

use virtbench_model::before_after::Direction;
use virtbench_model::history::{Changed, HistoryGroup, HistoryRun, Newest, Series};

use crate::format::{significant, with_unit};
use crate::provenance::moment;

/// `vm, all points: throughput 60.0 % lower in the newest run, 2026-11-14 (run-19), than before (100 MB/s to 40 MB/s)`.
pub(crate) fn newest_in_words(group: &HistoryGroup, series: &Series, newest: &Newest) -> String {
    let first = &group.runs[group.runs.len() - newest.runs];
    let which = match newest.runs {
        1 => format!("the newest run, {}", run_name(first)),
        runs => format!("the newest {runs} runs, since {}", run_name(first)),
    };
    let Series { subject, quantity, unit, .. } = series;
    if newest.after == 0.0 || newest.after.is_infinite() {
        return format!("{subject}: {quantity}: nothing was completed in {which}");
    }
    let (how, percent) = difference(newest.before, newest.after);
    let values = [newest.before, newest.after].map(|value| with_unit(value, unit));
    format!(
        "{subject}: {quantity} {percent} % {how} in {which}, than before ({} to {})",
        values[0], values[1]
    )
}

/// Lower or higher, and by how many percent.
fn difference(before: f64, after: f64) -> (&'static str, String) {
    let how = if after < before { "lower" } else { "higher" };
    (how, significant(100.0 * (after / before - 1.0).abs()))
}

/// `native, all points: throughput 20 % lower since 2026-11-01 (120 MB/s to 96 MB/s; virtbench 0.1.0 to 0.2.0)`.
pub(crate) fn changed_in_words(group: &HistoryGroup, series: &Series, change: &Changed) -> String {
    let (which, percent) = difference(change.before, change.after);
    let versions: Vec<String> =
        change.versions.iter().map(|[name, before, after]| format!("; {name} {before} to {after}")).collect();
    let verdict = match change.direction {
        Direction::Worse => ", worse",
        Direction::Better => ", better",
        Direction::Equivalent | Direction::Undecided => "",
    };
    if !change.after.is_finite() || change.after == 0.0 {
        let since = run_name(&group.runs[change.run]);
        return format!(
            "{}: {}: nothing was completed since {since}{}",
            series.subject,
            series.quantity,
            versions.concat()
        );
    }
    format!(
        "{}: {} {percent} % {which}{verdict} since {} ({} to {}{})",
        series.subject,
        series.quantity,
        run_name(&group.runs[change.run]),
        with_unit(change.before, &series.unit),
        with_unit(change.after, &series.unit),
        versions.concat()
    )
}

/// The day on which a run began, in UTC, and its folder's last part.
pub(crate) fn run_name(run: &HistoryRun) -> String {
    let name = run.folder.rsplit('/').next().unwrap_or(&run.folder);
    let moment = moment(run.started_unix_s);
    format!("{} ({name})", moment.split('T').next().unwrap_or(&moment))
}

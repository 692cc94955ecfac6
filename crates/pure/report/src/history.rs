//! What became of each measure from run to run: the sentences a reader takes away, and a page.

use maud::{Markup, html};
use virtbench_model::before_after::Direction;
use virtbench_model::history::{Changed, FALSE_ALARMS, History, HistoryGroup, HistoryRun, Series};

use crate::figures;
use crate::format::{count, ratio, scaled, significant, trimmed, with_unit};
use crate::page::{document, opening, section};
use crate::provenance::moment;
use crate::takeaway::Takeaway;

/// A page shows so many rows of measures of a group, at most.
const MOST_ROWS: usize = 400;
/// Fewer comparable runs than this have no change that could be told from chance.
const FEWEST_RUNS: usize = 6;

/// A history as a reader sees it.
#[derive(Debug, Clone, Copy)]
pub struct HistoryPage<'a> {
    /// What was found.
    pub history: &'a History,
}

impl HistoryPage<'_> {
    /// What a reader takes away.
    #[must_use]
    pub fn takeaway(&self) -> Takeaway {
        let groups = &self.history.groups;
        let runs: usize = groups.iter().map(|group| group.runs.len()).sum();
        let mut details: Vec<String> = Vec::new();
        for group in groups {
            let changes = group.changes();
            let headlines = changes.iter().filter(|(series, _)| series.headline);
            details.extend(headlines.map(|(series, change)| {
                format!("{}: {}.", group.study, changed_in_words(group, series, change))
            }));
            let parts = changes.iter().filter(|(series, _)| !series.headline).count();
            if parts > 0 {
                details.push(format!(
                    "{}: {} in single points or machines.",
                    group.study,
                    count(parts, "change")
                ));
            }
        }
        Takeaway { headline: self.headline(runs), details, cautions: self.cautions() }
    }

    fn headline(&self, runs: usize) -> String {
        if runs == 0 {
            return "There are no runs.".into();
        }
        let groups = &self.history.groups;
        let worse = groups.iter().flat_map(|group| group.series.iter().map(move |series| (group, series)));
        let worse: Vec<String> = worse
            .filter(|(_, series)| series.headline && series.is_worse_now())
            .filter_map(|(group, series)| Some(changed_in_words(group, series, series.changes.last()?)))
            .collect();
        if let Some(first) = worse.first() {
            let others = match worse.len() - 1 {
                0 => String::new(),
                more => format!(", and {}", count(more, "more measure")),
            };
            return format!("It got worse: {first}{others}.");
        }
        let watched = groups.iter().filter(|group| group.runs.len() >= FEWEST_RUNS).count();
        if watched == 0 {
            return format!(
                "{}, and never {FEWEST_RUNS} that can be compared with each other: too few to tell a change from chance.",
                count(runs, "run")
            );
        }
        format!("Nothing is worse than before, in {}.", count(runs, "run"))
    }

    fn cautions(&self) -> Vec<String> {
        let groups = &self.history.groups;
        if groups.is_empty() {
            return Vec::new();
        }
        let few = groups.iter().filter(|group| group.runs.len() < FEWEST_RUNS).count();
        let mut cautions = vec![format!(
            "Changes are found by E-Divisive with permutations. In comparable runs that never changed, one of the headlines is said \
             to have changed with a probability of {} %, and one of all other measures with as much; this takes for granted that \
             runs scatter independently of each other, which a host that drifts does not. A change smaller than {} % is shown and \
             not called better or worse.",
            trimmed(100.0 * FALSE_ALARMS, 1),
            trimmed(100.0 * self.history.margin, 2)
        )];
        if few > 0 {
            let what = if few == 1 {
                "1 group of runs has".to_owned()
            } else {
                format!("{few} groups of runs have")
            };
            cautions.push(format!("{what} fewer than {FEWEST_RUNS} runs: no change can be found there."));
        }
        cautions
    }

    /// One self-contained page, as written by a version of virtbench.
    #[must_use]
    pub fn html(&self, version: &str) -> String {
        let title = "History";
        let place = if self.history.groups.len() == 1 {
            "one group of comparable runs".to_owned()
        } else {
            format!("{} groups of comparable runs", self.history.groups.len())
        };
        let groups: Vec<(usize, &HistoryGroup)> = self.history.groups.iter().enumerate().collect();
        let drawn: Vec<Vec<figures::Figure>> =
            groups.iter().map(|(index, group)| figures::history(*index, group)).collect();
        let content = html! {
            (opening(title, &place, &self.takeaway(), &html! {}))
            @for ((index, group), figures) in groups.iter().zip(&drawn) {
                (section(&format!("group-{index}"), &group_name(group), "Nothing was measured.", figures))
                section aria-label=(format!("Numbers of {}", group.study)) {
                    h3 { "Every measure" }
                    (measures(group))
                    h3 { "Runs" }
                    (runs(group))
                }
            }
        };
        document(title, version, &content)
    }
}

fn group_name(group: &HistoryGroup) -> String {
    format!("{}, {} on {}", group.study, count(group.runs.len(), "run"), group.host)
}

/// `native, all points: throughput 20 % lower since 2026-11-01 (120 MB/s to 96 MB/s; virtbench 0.1.0 to 0.2.0)`.
pub(crate) fn changed_in_words(group: &HistoryGroup, series: &Series, change: &Changed) -> String {
    let which = if change.after < change.before { "lower" } else { "higher" };
    let percent = 100.0 * (change.after / change.before - 1.0).abs();
    let versions: Vec<String> =
        change.versions.iter().map(|[name, before, after]| format!("; {name} {before} to {after}")).collect();
    let verdict = match change.direction {
        Direction::Worse => ", worse",
        Direction::Better => ", better",
        Direction::Equivalent | Direction::Undecided => "",
    };
    format!(
        "{}: {} {} % {which}{verdict} since {} ({} to {}{})",
        series.subject,
        series.quantity,
        significant(percent),
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

fn measures(group: &HistoryGroup) -> Markup {
    let last = |series: &Series| series.values.last().map(|(_, value)| *value);
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every measure" {
            table {
                thead { tr {
                    th scope="col" { "measured" } th scope="col" { "what" } th.number scope="col" { "runs" }
                    th.number scope="col" { "least" } th.number scope="col" { "greatest" } th.number scope="col" { "latest" }
                    th scope="col" { "unit" } th scope="col" { "last change" }
                } }
                tbody { @for series in group.series.iter().take(MOST_ROWS) {
                    @let (factor, unit) = scaled(&series.unit);
                    @let values = || series.values.iter().map(|(_, value)| value * factor);
                    tr {
                        th scope="row" { (series.subject) } td { (series.quantity) }
                        td.number { (series.values.len()) }
                        td.number { (significant(values().fold(f64::INFINITY, f64::min))) }
                        td.number { (significant(values().fold(0.0, f64::max))) }
                        td.number { (significant(last(series).unwrap_or(f64::NAN) * factor)) }
                        td { (unit) }
                        @match series.changes.last() {
                            Some(change) => td class=(class(change)) {
                                (ratio(change.after / change.before)) " since " (run_name(&group.runs[change.run]))
                            },
                            None => td { "–" },
                        }
                    }
                } }
            }
        }
        @if group.series.len() > MOST_ROWS {
            p.hint { (count(group.series.len() - MOST_ROWS, "more measure")) " are in the numbers for programs." }
        }
    }
}

fn class(change: &Changed) -> &'static str {
    match change.direction {
        Direction::Better => "higher",
        Direction::Worse => "lower",
        Direction::Equivalent | Direction::Undecided => "",
    }
}

fn runs(group: &HistoryGroup) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Runs" {
            table {
                thead { tr {
                    th.number scope="col" { "run" } th scope="col" { "began, UTC" } th scope="col" { "folder" }
                    th scope="col" { "versions" } th scope="col" { "tags" }
                } }
                tbody { @for (index, run) in group.runs.iter().enumerate() { tr {
                    td.number { (index + 1) } td { (moment(run.started_unix_s)) } th scope="row" { (run.folder) }
                    td { @for (position, (name, version)) in run.versions.iter().enumerate() {
                        @if position > 0 { ", " } (name) " " (version)
                    } }
                    td { (run.tags.join(", ")) }
                } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use virtbench_model::Margin;
    use virtbench_model::history::{Measure, history};
    use virtbench_record::Better;

    fn run(at: u64, value: f64) -> HistoryRun {
        let measure = |headline: bool, subject: &str| Measure {
            subject: subject.into(),
            quantity: "throughput".into(),
            unit: "B/s".into(),
            better: Better::Higher,
            headline,
            value,
        };
        HistoryRun {
            folder: format!("/srv/run-{at}"),
            started_unix_s: 1_795_000_000 + 86_400 * at,
            study: "native-vs-vm".into(),
            plan: "p".into(),
            host: "<a host>".into(),
            versions: BTreeMap::from([("virtbench".into(), if at < 10 { "1" } else { "2" }.into())]),
            tags: vec![format!("t{at}")],
            measures: vec![measure(true, "vm, all points"), measure(false, "vm, 4 KiB")],
        }
    }

    fn page(runs: Vec<HistoryRun>) -> (Takeaway, String) {
        let history = history(runs, Margin::default(), 1);
        let page = HistoryPage { history: &history };
        (page.takeaway(), page.html("0"))
    }

    #[test]
    fn a_regression_is_the_headline_with_its_run_and_its_version() {
        let level = |at: u64| if at < 10 { 100e6 } else { 80e6 };
        let (takeaway, html) =
            page((0..18).map(|at| run(at, level(at) * (1.0 + 0.001 * (at % 3) as f64))).collect());
        let words = "It got worse: vm, all points: throughput 20.0 % lower, worse since";
        assert!(takeaway.headline.starts_with(words), "{}", takeaway.headline);
        assert!(takeaway.headline.contains("(run-10)"), "{}", takeaway.headline);
        assert!(takeaway.headline.contains("virtbench 1 to 2"), "{}", takeaway.headline);
        assert!(html.contains("history-0-0") && html.contains("&lt;a host&gt;") && html.contains("t17"));
    }

    #[test]
    fn few_runs_tell_nothing_and_say_so() {
        let (takeaway, html) = page(vec![run(1, 1.0), run(2, 2.0)]);
        assert!(takeaway.headline.contains("too few"), "{}", takeaway.headline);
        assert!(html.contains("run-2"));
        assert_eq!(page(Vec::new()).0.headline, "There are no runs.");
    }
}

//! What became of each measure from run to run: the sentences a reader takes away, and a page.

use maud::{Markup, html};
use virtbench_model::before_after::Direction;
use virtbench_model::history::{
    Changed, FALSE_ALARMS, FALSE_ALARMS_OF_NEWEST, FEWEST_RUNS, History, HistoryGroup, Series, Split,
};

use crate::figures;
use crate::figures::history::{changed_in_words, newest_in_words, run_name};
use crate::format::{count, ratio, scaled, significant, trimmed};
use crate::page::{document, opening, section};
use crate::provenance::moment;
use crate::takeaway::Takeaway;

/// A page shows so many rows of measures of a group, at most.
const MOST_ROWS: usize = 400;
/// As many values of a part are named, at most.
const MOST_VALUES: usize = 4;
/// As many letters of a value are shown, at most.
const MOST_LETTERS: usize = 60;

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
            .filter_map(|(group, series)| worse_in_words(group, series))
            .collect();
        if let Some(first) = worse.first() {
            let others = match worse.len() - 1 {
                0 => String::new(),
                more => format!(", and {}", count(more, "more measure")),
            };
            return format!("It got worse: {first}{others}.");
        }
        if !self.history.is_judged() || self.history.is_not_comparable() {
            let reasons = self.history.undecided.join("; ");
            return format!("It cannot be told whether it got worse: {reasons}.");
        }
        let compared = self.history.newest_group().map_or(0, |group| group.runs.len());
        let others = match runs - compared {
            0 => String::new(),
            others => format!("; {} are not compared with these", count(others, "other run")),
        };
        format!("Nothing is worse than before, in {}{others}.", count(compared, "comparable run"))
    }

    fn cautions(&self) -> Vec<String> {
        let history = self.history;
        if history.groups.is_empty() {
            return Vec::new();
        }
        let percent = |share: f64| trimmed(100.0 * share, 1);
        let mut cautions: Vec<String> = history.splits.iter().map(split_in_words).collect();
        if !history.joined.is_empty() {
            let parts = history.joined.join(", ");
            cautions.push(format!("Runs are compared that differ in {parts}, because that was asked for."));
        }
        if let Some(first) = history.copies.first() {
            cautions.push(format!(
                "{} left out, as a run counts once: {} holds the same run as {}{}.",
                if history.copies.len() == 1 {
                    "1 copy is".into()
                } else {
                    format!("{} copies are", history.copies.len())
                },
                first.copy,
                first.of,
                if history.copies.len() == 1 { "" } else { ", for one" }
            ));
        }
        cautions.extend(history.undecided.iter().map(|reason| format!("Not judged: {reason}.")));
        cautions.push(format!(
            "The newest runs are held against those before them, from {FEWEST_RUNS} comparable ones on, by Student's test of logarithms: \
             in runs that never changed, one of the headlines is called worse at {} % of looks. Older changes are found by \
             E-Divisive with permutations: in such runs, one of the headlines is said to have changed with a probability of {} %, \
             and one of all other measures with as much. All this takes for granted that \
             runs scatter independently of each other, which a host that drifts does not. A change smaller than {} % is shown and \
             not called better or worse.",
            percent(FALSE_ALARMS_OF_NEWEST),
            percent(FALSE_ALARMS),
            trimmed(100.0 * history.margin, 2)
        ));
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

/// What is worse in a series, by its newest runs or by its last change.
fn worse_in_words(group: &HistoryGroup, series: &Series) -> Option<String> {
    match series.newest.as_ref().filter(|_| series.is_newest_worse()) {
        Some(newest) => Some(newest_in_words(group, series, newest)),
        None => Some(changed_in_words(group, series, series.larger_changes().last()?)),
    }
}

/// `compare: runs are in groups that are not compared with each other, as they differ in processor: A (8 runs), B (8 runs).`
fn split_in_words(split: &Split) -> String {
    let shown = |(value, runs): &(String, usize)| {
        let short: String = value.chars().take(MOST_LETTERS).collect();
        let cut = if short.len() < value.len() { "..." } else { "" };
        format!("{short}{cut} ({})", count(*runs, "run"))
    };
    let mut values: Vec<String> = split.values.iter().take(MOST_VALUES).map(shown).collect();
    if split.values.len() > MOST_VALUES {
        values.push(format!("{} more", split.values.len() - MOST_VALUES));
    }
    format!(
        "{}: runs are in groups that are not compared with each other, as they differ in {}: {}. They can be joined.",
        split.study,
        split.part,
        values.join(", ")
    )
}

fn group_name(group: &HistoryGroup) -> String {
    format!("{}, {} on {}", group.study, count(group.runs.len(), "run"), group.host)
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
    use virtbench_model::history::{HistoryRun, Measure, history};
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
            parts: BTreeMap::new(),
            load: None,
            identity: format!("run {at}"),
            host: "<a host>".into(),
            versions: BTreeMap::from([("virtbench".into(), if at < 10 { "1" } else { "2" }.into())]),
            tags: vec![format!("t{at}")],
            measures: vec![measure(true, "vm, all points"), measure(false, "vm, 4 KiB")],
        }
    }

    fn page(runs: Vec<HistoryRun>) -> (Takeaway, String) {
        let history = history(runs, Margin::default(), &[], 1);
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
        let words = "It cannot be told whether it got worse: the newest run, /srv/run-2, has 1 comparable run before it";
        assert!(takeaway.headline.starts_with(words), "{}", takeaway.headline);
        assert!(html.contains("run-2"));
        assert_eq!(page(Vec::new()).0.headline, "There are no runs.");
    }

    #[test]
    fn the_newest_run_is_the_headline_where_it_is_worse() {
        let of = |last: f64| {
            let level = |at: u64| if at < 9 { 100e6 * (1.0 + 0.001 * (at % 3) as f64) } else { last };
            page((0..10).map(|at| run(at, level(at))).collect()).0.headline
        };
        let words = "It got worse: vm, all points: throughput 60.0 % lower in the newest run, 2026-11-27 (run-9), than before (100 MB/s to 40.0 MB/s).";
        assert_eq!(of(40e6), words);
        let words = "It got worse: vm, all points: throughput: nothing was completed in the newest run, 2026-11-27 (run-9).";
        assert_eq!(of(0.0), words);
        assert_eq!(of(100e6), "Nothing is worse than before, in 10 comparable runs.");
    }

    #[test]
    fn groups_and_copies_are_said() {
        let mut runs: Vec<HistoryRun> = (0..12).map(|at| run(at, 100e6)).collect();
        for (at, run) in runs.iter_mut().enumerate() {
            run.parts.insert("processor".into(), if at < 6 { "EPYC <1>" } else { "EPYC 2" }.into());
        }
        runs.push(HistoryRun { folder: "/srv/copy".into(), ..runs[11].clone() });
        let (takeaway, html) = page(runs);
        assert_eq!(
            takeaway.headline,
            "Nothing is worse than before, in 6 comparable runs; 6 other runs are not compared with these."
        );
        let words = "native-vs-vm: runs are in groups that are not compared with each other, as they differ in processor: \
                     EPYC 2 (6 runs), EPYC <1> (6 runs). They can be joined.";
        assert!(takeaway.cautions.iter().any(|caution| caution == words), "{:?}", takeaway.cautions);
        let copies = "1 copy is left out, as a run counts once: /srv/run-11 holds the same run as /srv/copy.";
        assert!(takeaway.cautions.iter().any(|caution| caution == copies), "{:?}", takeaway.cautions);
        assert!(html.contains("EPYC &lt;1&gt;"));
    }
}

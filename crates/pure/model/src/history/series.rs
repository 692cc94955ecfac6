//! Comparable runs in the order of time, and each of their measures as a series.

use std::collections::BTreeMap;

use serde::Serialize;
use virtbench_record::Better;

use super::change_points::change_points;
use super::measures::Measure;
use crate::before_after::Direction;
use crate::interval::{Span, median};
use crate::pairwise::Margin;

/// The probability with which comparable runs that never changed are said to have changed anywhere: once for their headlines
/// together, once for all the rest together.
pub const FALSE_ALARMS: f64 = 0.05;

/// A run in a history.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryRun {
    /// Its folder.
    pub folder: String,
    /// When it began, in seconds since 1970.
    pub started_unix_s: u64,
    /// Which study, such as `native-vs-vm`.
    pub study: String,
    /// What it set out to measure, as text that is the same for comparable runs.
    #[serde(skip)]
    pub plan: String,
    /// The host, in words that are the same for comparable runs.
    pub host: String,
    /// What else may explain a change, by name: virtbench's version, kernels, QEMU's version.
    pub versions: BTreeMap<String, String>,
    /// What a user called it.
    pub tags: Vec<String>,
    /// Its numbers.
    #[serde(skip)]
    pub measures: Vec<Measure>,
}

/// A change in a series.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// Index, among the group's runs, of the first run after it.
    pub run: usize,
    /// Median of the runs before it, back to the last change or the beginning.
    pub before: f64,
    /// Median of the runs after it, up to the next change or the end.
    pub after: f64,
    /// How probable so large a difference is by chance.
    pub probability: f64,
    /// What follows; equivalent where the medians are within the margin.
    pub direction: Direction,
    /// Versions that differ between the last run before it and the first after it: name, before, after.
    pub versions: Vec<[String; 3]>,
}

/// A measure, run after run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Where it was measured.
    pub subject: String,
    /// What was measured.
    pub quantity: String,
    /// Its unit.
    pub unit: String,
    /// Which direction is better.
    pub better: Better,
    /// Whether it sums up a run.
    pub headline: bool,
    /// Indices of the group's runs that have it, and their values, in the order of time.
    pub values: Vec<(usize, f64)>,
    /// Where it changed.
    pub changes: Vec<Changed>,
}

/// Runs of one plan on one host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HistoryGroup {
    /// Which study.
    pub study: String,
    /// The host.
    pub host: String,
    /// The runs, in the order of time.
    pub runs: Vec<HistoryRun>,
    /// Their measures, headlines first.
    pub series: Vec<Series>,
}

/// Everything that a set of runs comes to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct History {
    /// How much more or less counts as the same, as a share.
    pub margin: f64,
    /// Comparable runs, the most numerous first.
    pub groups: Vec<HistoryGroup>,
}

impl Series {
    /// Changes that are larger than the margin.
    pub fn larger_changes(&self) -> impl Iterator<Item = &Changed> {
        self.changes.iter().filter(|change| change.direction != Direction::Equivalent)
    }

    /// Whether it is worse since its last change.
    #[must_use]
    pub fn is_worse_now(&self) -> bool {
        self.changes.last().is_some_and(|change| change.direction == Direction::Worse)
    }
}

impl HistoryGroup {
    /// Every change beyond the margin, with its series, the latest first.
    #[must_use]
    pub fn changes(&self) -> Vec<(&Series, &Changed)> {
        let all = self.series.iter();
        let mut changes: Vec<_> =
            all.flat_map(|series| series.larger_changes().map(move |change| (series, change))).collect();
        changes.sort_by_key(|(series, change)| (std::cmp::Reverse(change.run), !series.headline));
        changes
    }
}

impl History {
    /// Whether a headline is worse since its last change.
    #[must_use]
    pub fn is_regression(&self) -> bool {
        let all = self.groups.iter().flat_map(|group| &group.series);
        all.filter(|series| series.headline).any(Series::is_worse_now)
    }
}

/// Puts comparable runs together and looks for changes in each of their measures. Changes are found on logarithms, so that half
/// and double weigh the same. `seed` determines the permutations.
#[must_use]
pub fn history(mut runs: Vec<HistoryRun>, margin: Margin, seed: u64) -> History {
    runs.sort_by(|one, other| {
        one.started_unix_s.cmp(&other.started_unix_s).then_with(|| one.folder.cmp(&other.folder))
    });
    let mut groups: BTreeMap<(String, String, String), Vec<HistoryRun>> = BTreeMap::new();
    for run in runs {
        groups.entry((run.study.clone(), run.host.clone(), run.plan.clone())).or_default().push(run);
    }
    let groups = groups.into_iter().map(|((study, host, _), runs)| {
        let series = all_series(&runs, margin, seed);
        HistoryGroup { study, host, runs, series }
    });
    let mut groups: Vec<HistoryGroup> = groups.collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.runs.len()));
    History { margin: margin.share(), groups }
}

fn all_series(runs: &[HistoryRun], margin: Margin, seed: u64) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    let mut places: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (run, measures) in runs.iter().map(|run| &run.measures).enumerate() {
        for measure in measures {
            let place =
                *places.entry((measure.subject.clone(), measure.quantity.clone())).or_insert_with(|| {
                    series.push(Series {
                        subject: measure.subject.clone(),
                        quantity: measure.quantity.clone(),
                        unit: measure.unit.clone(),
                        better: measure.better,
                        headline: measure.headline,
                        values: Vec::new(),
                        changes: Vec::new(),
                    });
                    series.len() - 1
                });
            series[place].values.push((run, measure.value));
        }
    }
    for headline in [true, false] {
        let family = series.iter().filter(|one| one.headline == headline).count();
        let level = FALSE_ALARMS / family.max(1) as f64;
        for (index, one) in series.iter_mut().enumerate().filter(|(_, one)| one.headline == headline) {
            one.changes = changes(one, runs, level, margin, seed.wrapping_add(index as u64));
        }
    }
    series.sort_by_key(|one| !one.headline);
    series
}

fn changes(series: &Series, runs: &[HistoryRun], level: f64, margin: Margin, seed: u64) -> Vec<Changed> {
    let logarithms: Vec<f64> = series.values.iter().map(|(_, value)| value.ln()).collect();
    let found = change_points(&logarithms, level, seed);
    let ends: Vec<usize> = found.iter().map(|change| change.index).chain([series.values.len()]).collect();
    let middle = |begin: usize, end: usize| {
        median(series.values[begin..end].iter().map(|(_, value)| *value)).unwrap_or(f64::NAN)
    };
    let finding = |before: f64, after: f64| {
        let ratio = after / before;
        margin.finding(Span { low: ratio, high: ratio })
    };
    let mut begin = 0;
    let changes = found.iter().zip(ends.iter().skip(1)).map(|(change, end)| {
        let (before, after) = (middle(begin, change.index), middle(change.index, *end));
        begin = change.index;
        let (last, first) = (series.values[change.index - 1].0, series.values[change.index].0);
        Changed {
            run: first,
            before,
            after,
            probability: change.probability,
            direction: Direction::of(finding(before, after), series.better),
            versions: different_versions(&runs[last], &runs[first]),
        }
    });
    changes.collect()
}

fn different_versions(before: &HistoryRun, after: &HistoryRun) -> Vec<[String; 3]> {
    let names = before
        .versions
        .keys()
        .chain(after.versions.keys().filter(|name| !before.versions.contains_key(*name)));
    let value =
        |run: &HistoryRun, name: &str| run.versions.get(name).cloned().unwrap_or_else(|| "none".into());
    names
        .map(|name| [name.clone(), value(before, name), value(after, name)])
        .filter(|[_, before, after]| before != after)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_support::normal;
    use virtbench_units::Random;

    fn run(at: u64, version: &str, values: &[f64]) -> HistoryRun {
        let measure = |(index, value): (usize, &f64)| Measure {
            subject: format!("s{index}"),
            quantity: "throughput".into(),
            unit: "B/s".into(),
            better: Better::Higher,
            headline: index < 3,
            value: *value,
        };
        HistoryRun {
            folder: format!("run-{at}"),
            started_unix_s: at,
            study: "native-vs-vm".into(),
            plan: "quick".into(),
            host: "h".into(),
            versions: BTreeMap::from([("virtbench".into(), version.into())]),
            tags: Vec::new(),
            measures: values.iter().enumerate().map(measure).collect(),
        }
    }

    fn noisy(random: &mut Random, at: u64, version: &str, levels: &[f64]) -> HistoryRun {
        let values: Vec<f64> = levels.iter().map(|level| level * (0.03 * normal(random)).exp()).collect();
        run(at, version, &values)
    }

    #[test]
    fn a_regression_is_found_with_the_version_that_brought_it() {
        let mut random = Random::new(3);
        let before = (0..12).map(|at| noisy(&mut random, at, "1", &[100.0, 50.0])).collect::<Vec<_>>();
        let after = (12..20).map(|at| noisy(&mut random, at, "2", &[80.0, 50.0])).collect::<Vec<_>>();
        let mut runs = [before, after].concat();
        runs.reverse();
        let history = history(runs, Margin::default(), 1);
        let group = &history.groups[0];
        let changes = group.changes();
        assert_eq!(changes.len(), 1, "{changes:?}");
        let (series, change) = changes[0];
        assert_eq!((series.subject.as_str(), change.run, change.direction), ("s0", 12, Direction::Worse));
        assert_eq!(change.versions, [["virtbench", "1", "2"].map(String::from)]);
        assert!(
            history.is_regression()
                && (change.before - 100.0).abs() < 3.0
                && (change.after - 80.0).abs() < 3.0
        );
    }

    #[test]
    fn a_regression_that_was_mended_is_none() {
        let mut random = Random::new(4);
        let runs = (0..30)
            .map(|at| noisy(&mut random, at, "1", &[if (10..20).contains(&at) { 80.0 } else { 100.0 }]));
        let history = history(runs.collect(), Margin::default(), 1);
        assert_eq!(history.groups[0].changes().len(), 2);
        assert!(!history.is_regression());
    }

    /// [`FALSE_ALARMS`] is of all the headlines of a group together, however many there are.
    #[test]
    fn histories_without_a_change_rarely_have_one() {
        let mut random = Random::new(5);
        let trials = 1_000;
        let mut alarms = [0, 0];
        for trial in 0..trials {
            let runs = (0..20).map(|at| noisy(&mut random, at, "1", &[100.0; 12]));
            let history = history(runs.collect(), Margin::new(0.001).unwrap(), trial);
            let any = |headline: bool| {
                let mut series = history.groups[0].series.iter().filter(|one| one.headline == headline);
                series.any(|one| !one.changes.is_empty())
            };
            alarms[0] += usize::from(any(true));
            alarms[1] += usize::from(any(false));
        }
        println!(
            "groups of 20 runs with a false alarm among 3 headlines and 9 others, of {trials}: {alarms:?}"
        );
        assert!(alarms.iter().all(|alarms| (20..=70).contains(alarms)), "{alarms:?}");
    }

    #[test]
    fn only_comparable_runs_are_put_together() {
        let other_host = HistoryRun { host: "other".into(), ..run(5, "1", &[1.0]) };
        let other_plan = HistoryRun { plan: "paper".into(), ..run(6, "1", &[1.0]) };
        let history = history(
            vec![run(1, "1", &[1.0]), run(2, "1", &[1.0]), other_host, other_plan],
            Margin::default(),
            1,
        );
        let sizes: Vec<usize> = history.groups.iter().map(|group| group.runs.len()).collect();
        assert_eq!(sizes, [2, 1, 1]);
    }
}

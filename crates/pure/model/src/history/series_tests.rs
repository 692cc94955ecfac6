#![allow(clippy::unwrap_used)]

use super::*;
use crate::history::{Measure, between_runs};
use crate::quantity::Quantity;
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
        parts: BTreeMap::from([("blocks".into(), "4096".into()), ("processor".into(), "h".into())]),
        load: None,
        identity: format!("run-{at}"),
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
    let history = history(runs, Margin::default(), &[], 1);
    let group = &history.groups[0];
    let changes = group.changes();
    assert_eq!(changes.len(), 1, "{changes:?}");
    let (series, change) = changes[0];
    assert_eq!((series.subject.as_str(), change.run, change.direction), ("s0", 12, Direction::Worse));
    assert_eq!(change.versions, [["virtbench", "1", "2"].map(String::from)]);
    assert!(
        history.is_regression() && (change.before - 100.0).abs() < 3.0 && (change.after - 80.0).abs() < 3.0
    );
}

#[test]
fn a_regression_that_was_mended_is_none() {
    let mut random = Random::new(4);
    let runs =
        (0..30).map(|at| noisy(&mut random, at, "1", &[if (10..20).contains(&at) { 80.0 } else { 100.0 }]));
    let history = history(runs.collect(), Margin::default(), &[], 1);
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
        let history = history(runs.collect(), Margin::new(0.001).unwrap(), &[], trial);
        let any = |headline: bool| {
            let mut series = history.groups[0].series.iter().filter(|one| one.headline == headline);
            series.any(|one| !one.changes.is_empty())
        };
        alarms[0] += usize::from(any(true));
        alarms[1] += usize::from(any(false));
    }
    println!("groups of 20 runs with a false alarm among 3 headlines and 9 others, of {trials}: {alarms:?}");
    assert!(alarms.iter().all(|alarms| (20..=70).contains(alarms)), "{alarms:?}");
}

fn with_part(run: HistoryRun, name: &str, value: &str) -> HistoryRun {
    let mut parts = run.parts.clone();
    parts.insert(name.into(), value.into());
    HistoryRun { parts, ..run }
}

#[test]
fn only_comparable_runs_are_put_together_and_it_is_said_why() {
    let runs = || {
        vec![
            run(1, "1", &[1.0]),
            run(2, "1", &[1.0]),
            with_part(run(5, "1", &[1.0]), "processor", "other"),
            with_part(run(6, "1", &[1.0]), "blocks", "8192"),
            HistoryRun { study: "adapters".into(), ..run(7, "1", &[1.0]) },
        ]
    };
    let sizes = |history: &History| history.groups.iter().map(|group| group.runs.len()).collect::<Vec<_>>();
    let apart = history(runs(), Margin::default(), &[], 1);
    assert_eq!(sizes(&apart), [2, 1, 1, 1]);
    let split = |part: &str, values: &[(&str, usize)]| Split {
        study: "native-vs-vm".into(),
        part: part.into(),
        values: values.iter().map(|(value, runs)| ((*value).into(), *runs)).collect(),
    };
    let expected =
        [split("blocks", &[("4096", 3), ("8192", 1)]), split("processor", &[("h", 3), ("other", 1)])];
    assert_eq!(apart.splits, expected);
    let joined = history(runs(), Margin::default(), &["processor".into()], 1);
    assert_eq!(sizes(&joined), [3, 1, 1]);
    assert_eq!(joined.splits, expected[..1]);
}

#[test]
fn a_joined_part_is_named_where_it_changed_with_the_figures() {
    let mut random = Random::new(8);
    let runs = (0..16).map(|at| {
        let (level, processor) = if at < 8 { (100.0, "old") } else { (50.0, "new") };
        with_part(noisy(&mut random, at, "1", &[level]), "processor", processor)
    });
    let runs: Vec<HistoryRun> = runs.collect();
    let apart = history(runs.clone(), Margin::default(), &[], 1);
    assert!(!apart.is_regression() && apart.splits.len() == 1, "{apart:?}");
    let joined = history(runs, Margin::default(), &["processor".into()], 1);
    assert!(joined.is_regression());
    let (_, change) = joined.groups[0].changes()[0];
    assert_eq!(change.versions, [["processor", "old", "new"].map(String::from)]);
}

#[test]
fn copies_of_a_run_count_once() {
    let mut runs: Vec<HistoryRun> = (0..5).map(|at| run(at, "1", &[1.0])).collect();
    let copies = (0..9).map(|at| HistoryRun { folder: format!("copy-{at}"), ..run(4, "1", &[1.0]) });
    // Of one that was still being measured when it was copied, the rest is not lost.
    let partial = HistoryRun { folder: "a-part".into(), measures: Vec::new(), ..run(3, "1", &[1.0]) };
    runs.extend(copies.chain([partial]));
    let history = history(runs, Margin::default(), &[], 1);
    assert_eq!(history.groups[0].runs.len(), 5);
    assert_eq!(history.copies.len(), 10);
    assert_eq!(history.copies[0], Copied { copy: "a-part".into(), of: "run-3".into() });
    assert!(history.groups[0].series[0].values.len() == 5);
}

#[test]
fn the_newest_run_is_judged_by_those_before_it() {
    let mut random = Random::new(12);
    for runs in [4, 8, 20] {
        let levels = |at: u64| if at + 1 < runs { 100.0 } else { 40.0 };
        let all = (0..runs).map(|at| noisy(&mut random, at, "1", &[levels(at)]));
        let history = history(all.collect(), Margin::default(), &[], 1);
        assert!(history.is_regression() && history.is_judged(), "{runs}: {history:?}");
        let newest = history.groups[0].series[0].newest.unwrap();
        assert!(newest.runs == 1 && newest.after < 45.0 && newest.before > 90.0, "{newest:?}");
    }
}

#[test]
fn runs_that_completed_nothing_are_worse() {
    let mut random = Random::new(13);
    for last in [1, 6] {
        let levels = |at: u64| if at + last < 16 { 100.0 } else { 0.0 };
        let all = (0..16).map(|at| noisy(&mut random, at, "1", &[levels(at)]));
        let history = history(all.collect(), Margin::default(), &[], 1);
        assert!(history.is_regression() && history.is_judged(), "{last}: {history:?}");
    }
}

#[test]
fn what_could_not_be_judged_is_said() {
    let reasons = |runs: Vec<HistoryRun>| {
        let history = history(runs, Margin::default(), &[], 1);
        (history.is_judged(), history.undecided.join("; "))
    };
    assert_eq!(reasons(Vec::new()), (false, "there are no runs".into()));
    let mut runs: Vec<HistoryRun> = (0..8).map(|at| run(at, "1", &[1.0, 2.0])).collect();
    let (judged, why) = reasons(runs.clone());
    assert!(judged && why.is_empty(), "{why}");
    let few = runs[..3].to_vec();
    assert!(!reasons(few.clone()).0 && reasons(few).1.contains("has 2 comparable runs before it"));
    // The newest one stands alone.
    runs.push(with_part(run(9, "1", &[1.0, 2.0]), "processor", "other"));
    let (judged, why) = reasons(runs.clone());
    assert!(!judged && why.contains("the newest run, run-9, has 0 comparable runs before it"), "{why}");
    *runs.last_mut().unwrap() = HistoryRun { measures: Vec::new(), ..run(9, "1", &[]) };
    let (judged, why) = reasons(runs);
    assert!(!judged && why.contains("has no throughput of s0, no throughput of s1"), "{why}");
}

#[test]
fn a_run_on_a_busier_host_is_not_called_worse_but_that_it_completed_nothing_is() {
    let busy = |others: f64, run: HistoryRun| {
        let load = Some(LoadSample { others: Some(others), steal: 0.0, runnable: None, processors: 2 });
        HistoryRun { load, ..run }
    };
    let last = |level: f64| {
        let runs = (0..8).map(|at| busy(0.2, run(at, "1", &[100.0 + at as f64])));
        history(runs.chain([busy(1.6, run(9, "1", &[level]))]).collect(), Margin::default(), &[], 1)
    };
    let slower = last(40.0);
    assert!(!slower.is_regression(), "{slower:?}");
    assert!(slower.undecided[0].contains("the second host was 8 times busier"), "{:?}", slower.undecided);
    assert!(last(0.0).is_regression());
    let late = (0..16).map(|at| {
        let (others, level) = if at < 8 { (0.2, 100.0) } else { (1.6, 50.0) };
        busy(others, run(at, "1", &[level + at as f64 / 10.0]))
    });
    let late = history(late.collect(), Margin::default(), &[], 1);
    assert!(!late.is_regression() && !late.undecided.is_empty(), "{late:?}");
}

#[test]
fn the_spread_between_runs_is_that_around_their_levels() {
    let mut random = Random::new(14);
    let point = virtbench_record::PointKey { block_bytes: 4096, read_percent: 100, random_percent: 0 };
    let runs = (0..40).map(|at| {
        let level = if at < 20 { 100.0 } else { 50.0 };
        let measure = |subject: String, spread: f64, random: &mut Random| Measure {
            subject,
            quantity: "throughput".into(),
            unit: "B/s".into(),
            better: Better::Higher,
            headline: true,
            value: level * (spread * normal(random)).exp(),
        };
        let all = measure("vm, all points".into(), 0.05, &mut random);
        let one = measure(format!("vm, {point}"), 0.2, &mut random);
        HistoryRun { measures: vec![all, one], ..run(at, "1", &[]) }
    });
    let runs: Vec<HistoryRun> = runs.collect();
    let known = |runs: &[&HistoryRun]| between_runs(runs, &["vm".into()], &[point], 1);
    let found = known(&runs.iter().collect::<Vec<_>>()).unwrap();
    let spread = |point| found.spreads[&("vm".to_owned(), point, Quantity::Throughput)];
    let (of_all, of_one) = (spread(None), spread(Some(point)));
    assert!((0.03..0.07).contains(&of_all.0.sqrt()) && of_all.1 >= 36.0, "{of_all:?}");
    assert!((0.14..0.28).contains(&of_one.0.sqrt()), "{of_one:?}");
    assert_eq!((found.runs, known(&[&runs[0], &runs[1]])), (40, None));
}

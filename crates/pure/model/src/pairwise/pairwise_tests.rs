use std::collections::BTreeMap;

use proptest::prelude::*;
use virtbench_record::{PointMetrics, ResultRow};
use virtbench_units::Random;

use super::*;
use crate::ratio::Ratio;
use crate::test_support::normal;

const SEED: u64 = 7;

fn row(configuration: &str, block_bytes: u64, random_percent: u8, repetition: u32, iops: f64) -> ResultRow {
    ResultRow {
        configuration: configuration.into(),
        point: PointKey { block_bytes, read_percent: 100, random_percent },
        repetition,
        figures: PointMetrics {
            iops,
            bytes_per_second: iops * block_bytes as f64,
            latency_ns: Some(16e9 / iops),
            cpu_percent: Some(50.0),
        },
    }
}

/// Five repetitions at one point around `iops`, each `spread` away from it at most.
fn around(configuration: &str, iops: f64, spread: f64, random: &mut Random) -> Vec<ResultRow> {
    (0..5)
        .map(|n| row(configuration, 4096, 0, n, iops * (1.0 + 2.0 * spread * (random.unit() - 0.5))))
        .collect()
}

fn analysed(rows: &[ResultRow]) -> Analysis {
    analyse(Measurements::from_rows(rows, SEED), Margin::default(), SEED)
}

fn finding(rows: &[ResultRow], metric: Metric) -> Finding {
    analysed(rows).pairs[0].points[0].judged(metric).unwrap().finding
}

#[test]
fn a_margin_is_a_share_that_makes_sense() {
    let span = Margin::default().span();
    assert!((span.high - 1.05).abs() < 1e-12 && (span.low - 1.0 / 1.05).abs() < 1e-12);
    for share in [0.0, -0.1, 1.1, f64::NAN] {
        assert_eq!(Margin::new(share), None, "{share}");
    }
}

#[test]
fn differences_equivalence_and_doubt_are_told_apart() {
    let mut random = Random::new(1);
    let mut against = |iops, spread| {
        let rows =
            [around("a", iops, spread, &mut random), around("b", 1000.0, spread, &mut random)].concat();
        finding(&rows, Metric::Rate)
    };
    assert_eq!(against(1200.0, 0.005), Finding::Higher);
    assert_eq!(against(800.0, 0.005), Finding::Lower);
    assert_eq!(against(1010.0, 0.005), Finding::Equivalent);
    // Noise of 40 % proves neither that they differ nor that they are the same.
    assert_eq!(against(1010.0, 0.4), Finding::Undecided);
    // More than nothing, yet not shown to be more than the margin.
    assert_eq!(against(1050.0, 0.005), Finding::Undecided);
}

#[test]
fn a_response_time_falls_as_the_rate_rises() {
    let mut random = Random::new(2);
    let rows = [around("a", 1200.0, 0.005, &mut random), around("b", 1000.0, 0.005, &mut random)].concat();
    assert_eq!(finding(&rows, Metric::ResponseTime), Finding::Lower);
    assert_eq!(finding(&rows, Metric::Efficiency), Finding::Higher);
}

#[test]
fn without_repetitions_the_value_alone_is_judged_and_marked() {
    let analysis = analysed(&[row("a", 4096, 0, 0, 1040.0), row("b", 4096, 0, 0, 1000.0)]);
    let judged = analysis.pairs[0].points[0].judged(Metric::Rate).unwrap();
    assert_eq!((judged.finding, judged.has_spread()), (Finding::Equivalent, false));
    let tally = analysis.tally(Metric::Rate);
    assert_eq!((tally.equivalent, tally.without_spread, tally.points()), (1, 1, 1));
}

/// Of `trials` pairs whose true ratio is `truth`, the share judged as `wrong` says.
fn share(truth: f64, wrong: impl Fn(Finding) -> bool) -> f64 {
    let mut random = Random::new(2_006);
    let mut normal = || normal(&mut random);
    let trials = 4_000;
    let mut hits = 0;
    for trial in 0..trials {
        let side = |level: f64, noise: &mut dyn FnMut() -> f64| {
            (0..4).map(|n| (n, level * (0.01 * noise()).exp())).collect::<BTreeMap<u32, f64>>()
        };
        let (below, above) = (side(1.0, &mut normal), side(truth, &mut normal));
        let ratio = paired_ratio_at(&below, &above, VERDICT_CONFIDENCE, trial).unwrap();
        hits += u32::from(wrong(Judged::new(ratio, Margin::default()).finding));
    }
    f64::from(hits) / f64::from(u32::try_from(trials).unwrap())
}

#[test]
fn verdicts_given_with_confidence_are_wrong_in_five_percent_of_trials_at_most() {
    // At the end of the margin each claim is as hard to tell from its opposite as it can be.
    let equivalent = share(1.05, |finding| finding == Finding::Equivalent);
    assert!((0.03..0.065).contains(&equivalent), "{equivalent}");
    let higher = share(1.05, |finding| finding == Finding::Higher);
    assert!((0.03..0.065).contains(&higher), "{higher}");
    assert!(share(1.0, |finding| matches!(finding, Finding::Higher | Finding::Lower)) < 0.001);
    assert!(share(1.2, |finding| finding == Finding::Higher) > 0.99, "what is plain is seen");
    assert!(share(1.0, |finding| finding == Finding::Equivalent) > 0.9, "what is equal is seen");
}

/// In what share of trials a ranking of configurations with these true rates says of any that it is
/// behind the best by more than the margin though it is not.
fn wrongly_behind(truths: &[f64], margin: Margin) -> f64 {
    let mut random = Random::new(1_984);
    let trials = 1_500;
    let wrong = (0..trials).filter(|_| {
        let mut rows = Vec::new();
        for (index, truth) in truths.iter().enumerate() {
            for n in 0..4 {
                rows.push(row(&index.to_string(), 4096, 0, n, truth * (0.01 * normal(&mut random)).exp()));
            }
        }
        let analysis = analyse(Measurements::from_rows(&rows, SEED), margin, SEED);
        analysis.groups[0].standings.iter().any(|standing| standing.is(Finding::Lower))
    });
    wrong.count() as f64 / f64::from(trials)
}

#[test]
fn a_ranking_is_wrong_about_any_of_seven_in_five_percent_of_trials_at_most() {
    // A system that is behind by exactly the margin is as hard to tell from one behind by more as can be.
    let (margin, ahead) = (Margin::default(), 1_050.0);
    let one = wrongly_behind(&[ahead, 1e3, 1e3, 1e3, 1e3, 1e3, 1e3], margin);
    let three = wrongly_behind(&[ahead, ahead, ahead, 1e3, 1e3, 1e3, 1e3], margin);
    let equal = wrongly_behind(&[1e3; 7], Margin::new(0.0005).unwrap());
    let two = wrongly_behind(&[ahead, 1e3], margin);
    println!("one ahead {one:.3}, three ahead {three:.3}, all equal {equal:.3}; of two {two:.3}");
    assert!([one, three, equal, two].iter().all(|share| *share <= 0.06), "{one} {three} {equal} {two}");
}

#[test]
fn a_point_measured_on_one_side_only_is_in_no_pair() {
    let analysis = analysed(&[row("a", 4096, 0, 0, 1.0), row("b", 8192, 0, 0, 1.0)]);
    assert!(analysis.pairs[0].points.is_empty());
    assert!(
        analysis.groups[0].points.is_empty() && analysis.advice(&analysis.groups[0]) == Advice::NotMeasured
    );
    assert!(recommend(&analysis).is_empty());
}

/// Random work for `b`, sequential for `a`; `c` is as fast as `a` and costs twice the CPU.
fn three() -> Vec<ResultRow> {
    let mut rows = Vec::new();
    for n in 0..4 {
        for block in [4096, 65536] {
            let wobble = 1.0 + f64::from(n) * 0.001;
            rows.push(row("c", block, 0, n, 2001.0 * wobble));
            rows.push(row("a", block, 0, n, 2000.0 * wobble));
            rows.push(row("b", block, 0, n, 1000.0 * wobble));
            rows.push(row("a", block, 100, n, 500.0 * wobble));
            rows.push(row("b", block, 100, n, 900.0 * wobble));
            rows.push(row("c", block, 100, n, 500.0 * wobble));
        }
    }
    for row in rows.iter_mut().filter(|row| row.configuration == "c") {
        row.figures.cpu_percent = Some(100.0);
    }
    rows
}

#[test]
fn each_kind_of_io_has_its_best_and_the_cheaper_of_equals_is_chosen() {
    let analysis = analysed(&three());
    let name = |standing: &Standing| analysis.name(standing.configuration).to_owned();
    let choices: Vec<String> = analysis
        .groups
        .iter()
        .map(|group| analysis.advice(group).choices().into_iter().map(name).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(choices, ["a", "a", "b", "b"], "sequential small and large, random small and large");
    assert_eq!(name(&analysis.groups[0].standings[0]), "c", "the fastest by a hair");
    let uses = recommend(&analysis);
    let named: Vec<(&str, usize)> =
        uses.iter().map(|item| (analysis.name(item.configuration), item.groups.len())).collect();
    assert_eq!(named, [("a", 2), ("b", 2)]);
}

#[test]
fn where_the_best_is_not_told_from_another_nothing_is_advised() {
    let mut random = Random::new(3);
    let rows = [
        around("a", 1_010.0, 0.4, &mut random),
        around("b", 1_000.0, 0.4, &mut random),
        around("c", 10.0, 0.001, &mut random),
    ];
    let analysis = analysed(&rows.concat());
    let advice = analysis.advice(&analysis.groups[0]);
    let Advice::NotTold { others, .. } = &advice else { panic!("{advice:?}") };
    assert_eq!(others.len(), 1, "c is behind for certain");
    assert!(advice.choices().is_empty() && recommend(&analysis).is_empty());
}

#[test]
fn the_range_of_efficiency_is_that_of_the_points_asked_for() {
    let rows = three();
    let analysis = analysed(&rows);
    assert_eq!(analysis.measurements.configurations, ["c", "a", "b"]);
    assert_eq!(analysis.pairs.len(), 3);
    let range = analysis.efficiency_range(1, |key| key.random_percent == 0).unwrap();
    assert!((range.low - 40.06).abs() < 1.0 && range.high <= 40.13, "{range:?}");
}

proptest! {
    #[test]
    fn the_order_of_a_pair_does_not_matter(value in 0.5f64..2.0, below in 0.0f64..0.3, above in 0.0f64..0.3) {
        let ratio = |value: f64, low: f64, high: f64| Ratio {
            value, interval: Some(crate::Span { low, high }), pairs: 3, unpaired: 0,
        };
        let forth = Judged::new(ratio(value, value * (1.0 - below), value * (1.0 + above)), Margin::default());
        let back = ratio(1.0 / value, 1.0 / (value * (1.0 + above)), 1.0 / (value * (1.0 - below)));
        prop_assert_eq!(Judged::new(back, Margin::default()).finding, forth.finding.swapped());
        prop_assert_eq!(forth.swapped().swapped().finding, forth.finding);
    }

    #[test]
    fn nothing_panics_it(
        drawn in prop::collection::vec((0usize..4, 0u64..3, 0u8..2, 0u32..4, prop::sample::select(vec![0.0, 1.0, 1e9, f64::NAN])), 0..60),
    ) {
        let rows: Vec<ResultRow> = drawn
            .into_iter()
            .map(|(name, block, random, repetition, iops)| {
                row(["a", "b", "c", "d"][name], 4096 << (2 * block), random * 100, repetition, iops)
            })
            .collect();
        let analysis = analysed(&rows);
        for item in recommend(&analysis) {
            prop_assert!(!item.groups.is_empty());
        }
        for metric in Metric::ALL {
            prop_assert!(analysis.tally(metric).without_spread <= analysis.tally(metric).points());
        }
    }
}

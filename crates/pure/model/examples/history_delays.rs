//! How soon a change of level is found in the history of a headline, and how often one is found that is none: by simulation.
//!
//! ```sh
//! cargo run --release -p virtbench-model --example history_delays
//! ```
//!
//! Runs come one after the other, and the history is looked at after each, as a nightly job does. Their values vary by a normal
//! distribution of logarithms, independently of each other. A history has four headlines, of which one changes.

#![allow(clippy::unwrap_used, missing_docs, reason = "a program")]

use std::collections::BTreeMap;

use virtbench_model::Margin;
use virtbench_model::history::{HistoryRun, Measure, history};
use virtbench_record::Better;
use virtbench_units::Random;

const HEADLINES: usize = 4;
/// How many runs after a change are looked at.
const LOOKS: usize = 16;
const TRIALS: usize = 200;

fn main() {
    println!(
        "Runs after a change until it is called worse, of {TRIALS} histories each: by the first one, median, 95 % of them\n"
    );
    println!(
        "| runs vary by | change | runs before | by the first | median | 95 % within |\n|---|---|---|---|---|---|"
    );
    for (spread, factors) in [(0.01, [0.1, 0.8, 0.9]), (0.05, [0.1, 0.5, 0.8]), (0.1, [0.1, 0.5, 0.7])] {
        for factor in factors {
            for before in [3, 6, 10, 20] {
                let mut delays: Vec<usize> =
                    (0..TRIALS).map(|trial| delay(before, spread, factor, trial as u64)).collect();
                delays.sort_unstable();
                let first = delays.iter().filter(|delay| **delay == 1).count();
                let shown =
                    |delay: usize| if delay > LOOKS { format!("over {LOOKS}") } else { delay.to_string() };
                println!(
                    "| {:.0} % | {:.0} % | {before} | {:.0} % | {} | {} |",
                    100.0 * spread,
                    100.0 * (factor - 1.0),
                    100.0 * first as f64 / TRIALS as f64,
                    shown(delays[TRIALS / 2]),
                    shown(delays[TRIALS * 19 / 20])
                );
            }
        }
    }
    println!("\nHistories without a change in which a look calls something worse\n");
    println!("| runs vary by | runs | of looks | of histories, over all looks |\n|---|---|---|---|");
    for spread in [0.01, 0.05, 0.1, 0.2] {
        let (mut alarms, mut histories, mut looks) = (0_u32, 0_u32, 0_u32);
        for trial in 0..TRIALS {
            let mut random = Random::new(1_000 + trial as u64);
            let mut runs: Vec<HistoryRun> = Vec::new();
            let mut any = false;
            for at in 0..20 {
                runs.push(run(&mut random, at, spread, 1.0));
                if runs.len() >= 4 {
                    let is_worse = is_worse(&runs);
                    (alarms, looks) = (alarms + u32::from(is_worse), looks + 1);
                    any |= is_worse;
                }
            }
            histories += u32::from(any);
        }
        println!(
            "| {:.0} % | 4 to 20 | {:.2} % | {:.1} % |",
            100.0 * spread,
            100.0 * f64::from(alarms) / f64::from(looks),
            100.0 * f64::from(histories) / TRIALS as f64
        );
    }
}

/// How many runs after the change it is first called worse; more than [`LOOKS`] if none of them does.
fn delay(before: usize, spread: f64, factor: f64, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let mut runs: Vec<HistoryRun> = (0..before).map(|at| run(&mut random, at, spread, 1.0)).collect();
    for look in 1..=LOOKS {
        runs.push(run(&mut random, before + look, spread, factor));
        if is_worse(&runs) {
            return look;
        }
    }
    LOOKS + 1
}

fn is_worse(runs: &[HistoryRun]) -> bool {
    history(runs.to_vec(), Margin::default(), &[], 1).is_regression()
}

fn run(random: &mut Random, at: usize, spread: f64, factor: f64) -> HistoryRun {
    let measure = |index: usize, random: &mut Random| Measure {
        subject: format!("environment {index}, all points"),
        quantity: "throughput".into(),
        unit: "B/s".into(),
        better: Better::Higher,
        headline: true,
        value: 1e8 * if index == 0 { factor } else { 1.0 } * (spread * normal(random)).exp(),
    };
    HistoryRun {
        folder: format!("run-{at}"),
        started_unix_s: at as u64,
        study: "compare".into(),
        parts: BTreeMap::new(),
        load: None,
        identity: format!("run-{at}"),
        host: "a host".into(),
        versions: BTreeMap::new(),
        tags: Vec::new(),
        measures: (0..HEADLINES).map(|index| measure(index, random)).collect(),
    }
}

/// By the method of Box and Muller.
fn normal(random: &mut Random) -> f64 {
    let radius = (-2.0 * (1.0 - random.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.unit()).cos()
}

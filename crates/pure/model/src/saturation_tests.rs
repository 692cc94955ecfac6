//! The search against queues whose saturation is known.

use super::*;
use crate::slo::{Slo, parse_slo};
use virtbench_units::Random;

/// A single server at which operations arrive at random.
struct Queue {
    /// Operations per second it can do.
    capacity: f64,
    /// Whether service takes always as long (M/D/1) or a random time (M/M/1).
    deterministic: bool,
    random: Random,
}

const SECONDS: f64 = 2.0;

impl Queue {
    fn exponential(&mut self, rate: f64) -> f64 {
        -(1.0 - self.random.unit()).ln() / rate
    }

    fn service(&mut self) -> f64 {
        if self.deterministic { 1.0 / self.capacity } else { self.exponential(self.capacity) }
    }

    fn apply(&mut self, probe: Probe, slo: Option<Slo>) -> RunResult {
        let mut latencies = Vec::new();
        let (mut arrival, mut free) = (0.0, 0.0f64);
        loop {
            match probe {
                Probe::Closed => arrival = free,
                Probe::Offered { per_second } => arrival += self.exponential(per_second),
            }
            free = free.max(arrival) + self.service();
            if free > SECONDS {
                break;
            }
            latencies.push((free - arrival) * 1e9);
        }
        let achieved = latencies.len() as f64 / SECONDS;
        let mean_ns = latencies.iter().sum::<f64>() / latencies.len() as f64;
        latencies.sort_unstable_by(f64::total_cmp);
        let p99_ns = latencies[latencies.len() * 99 / 100];
        let limited = slo.map(|slo| if slo.figure.name() == "mean" { mean_ns } else { p99_ns });
        RunResult { achieved, mean_ns: Some(mean_ns), p99_ns: Some(p99_ns), limited_ns: limited }
    }
}

fn search(capacity: f64, deterministic: bool, slo: Option<&str>, seed: u64) -> (Saturation, u32) {
    let mut queue = Queue { capacity, deterministic, random: Random::new(seed) };
    let rules = SaturationRules {
        slo: slo.map(|text| parse_slo(text).unwrap()),
        repetitions: 1,
        ..SaturationRules::new(SECONDS)
    };
    let mut search = SaturationSearch::new(rules);
    let mut runs = 0;
    while let Some(probe) = search.next_probe() {
        search.observe(queue.apply(probe, rules.slo));
        runs += 1;
        assert!(runs <= rules.most_runs(), "more runs than announced");
    }
    (search.result(), runs)
}

/// Over 100 seeds and capacities: the worst relative error of the rate and of its knee.
fn worst(deterministic: bool, slo: Option<&str>, truth: impl Fn(f64) -> f64, knee: Option<f64>) -> [f64; 2] {
    let mut worst = [0f64; 2];
    for seed in 0..100 {
        let capacity = 8_000.0 + 40.0 * seed as f64;
        let (found, _) = search(capacity, deterministic, slo, seed);
        assert!(found.resolved, "seed {seed}: {:?}", found.bounds);
        let error = (found.rate / truth(capacity) - 1.0).abs();
        assert!(error <= 0.05, "seed {seed}: {} for {}", found.rate, truth(capacity));
        worst[0] = worst[0].max(error);
        if let Some(knee) = knee {
            worst[1] = worst[1].max((found.knee.unwrap().rate / capacity - knee).abs());
        }
    }
    worst
}

#[test]
fn the_saturation_of_a_markov_queue_is_found_in_all_of_a_hundred_seeds() {
    let [rate, knee] = worst(false, None, |capacity| capacity, Some(0.5));
    println!("M/M/1: worst error of saturation {rate:.3}, of the knee {knee:.3} of capacity");
    assert!(knee < 0.15, "{knee}");
}

#[test]
fn the_saturation_of_a_queue_with_constant_service_is_found_in_all_of_a_hundred_seeds() {
    let [rate, knee] = worst(true, None, |capacity| capacity, Some(2.0 - 2f64.sqrt()));
    println!("M/D/1: worst error of saturation {rate:.3}, of the knee {knee:.3} of capacity");
    assert!(knee < 0.15, "{knee}");
}

#[test]
fn a_service_level_on_the_99th_percentile_is_found() {
    // Responses of M/M/1 are exponential with rate (capacity - arrivals).
    let limit = 100f64.ln() / 2_500.0;
    let slo = format!("p99<{}ns", (limit * 1e9).round());
    let [rate, _] = worst(false, Some(&slo), |capacity| capacity - 2_500.0, None);
    println!("M/M/1, p99: worst error {rate:.3}");
}

#[test]
fn a_service_level_on_the_mean_is_found() {
    // Pollaczek and Khinchine: 1/c + rho / (2 c (1 - rho)) = t.
    let truth = |capacity: f64| {
        let excess = 2.0 * (3e-4 * capacity - 1.0);
        capacity * excess / (1.0 + excess)
    };
    let [rate, _] = worst(true, Some("mean<300us"), truth, None);
    println!("M/D/1, mean: worst error {rate:.3}");
}

#[test]
fn an_impossible_service_level_ends_with_nothing() {
    let (found, runs) = search(10_000.0, true, Some("p99<1us"), 1);
    assert!(found.rate.abs() < f64::EPSILON && found.curve.is_empty() && found.knee.is_none());
    assert!(runs <= 85, "{runs}");
}

#[test]
fn a_dead_target_ends_at_once() {
    let mut search = SaturationSearch::new(SaturationRules::new(1.0));
    let mut runs = 0;
    while search.next_probe().is_some() {
        search.observe(RunResult { achieved: 0.0, mean_ns: None, p99_ns: None, limited_ns: None });
        runs += 1;
    }
    assert_eq!(runs, 5);
    assert_eq!(search.result().tried, []);
}

#[test]
fn a_target_that_does_more_in_an_open_loop_is_followed_upwards() {
    // With more operations outstanding than the closed loop has, more may be done: up to 3,000/s.
    let mut search = SaturationSearch::new(SaturationRules { poisson: false, ..SaturationRules::new(1.0) });
    while let Some(probe) = search.next_probe() {
        let achieved = match probe {
            Probe::Closed => 1_000.0,
            Probe::Offered { per_second } => per_second.min(3_000.0),
        };
        search.observe(RunResult { achieved, mean_ns: Some(1e6), p99_ns: Some(1e6), limited_ns: None });
    }
    let found = search.result();
    assert!(found.resolved && (found.rate / 3_000.0 - 1.0).abs() < 0.03, "{found:?}");
}

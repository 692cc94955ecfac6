//! How much a target can do: the runs behind [`SaturationSearch`] ([VirtualFence 2013], section 4.3).

use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_model::{Probe, RunResult, Saturation, SaturationRules, SaturationSearch};
use virtbench_record::LoadOutcome;
use virtbench_workload::{Arrivals, LoadSpec, MAX_RATE, Rate};

use crate::search::apply::{Load, SearchError, apply_clean};

/// One run of the search, to be shown.
#[derive(Debug)]
pub struct SaturationRun<'a> {
    /// Which run, from 1.
    pub number: u32,
    /// The most there can be.
    pub most: u32,
    /// What was asked for.
    pub probe: Probe,
    /// What came of it.
    pub outcome: &'a LoadOutcome,
}

/// Searches the saturation of the target behind `load`. Every run is `base` with a rate of its own
/// and a seed of its own; `on_run` is called with each.
///
/// # Errors
/// A load could not be applied, operations failed, or `stop` was set.
pub fn saturate<L: Load>(
    load: &mut L,
    base: &LoadSpec,
    rules: SaturationRules,
    stop: &AtomicBool,
    on_run: &mut dyn FnMut(&SaturationRun<'_>),
) -> Result<Saturation, SearchError<L::Error>> {
    let mut search = SaturationSearch::new(rules);
    let arrivals = if rules.poisson { Arrivals::Poisson } else { Arrivals::Constant };
    let most = rules.most_runs();
    for number in 1..=most {
        let Some(probe) = search.next_probe() else { break };
        if stop.load(Ordering::Relaxed) {
            return Err(SearchError::Stopped);
        }
        let rate = match probe {
            Probe::Closed => None,
            Probe::Offered { per_second } if per_second > MAX_RATE => {
                return Err(SearchError::TooFast { per_second });
            }
            Probe::Offered { per_second } => Some(Rate { per_second, arrivals }),
        };
        let spec = LoadSpec { rate, seed: base.seed.wrapping_add(u64::from(number)), ..base.clone() };
        let outcome = apply_clean(load, &spec)?;
        search.observe(figures(&outcome, &rules));
        on_run(&SaturationRun { number, most, probe, outcome: &outcome });
    }
    Ok(search.result())
}

fn figures(outcome: &LoadOutcome, rules: &SaturationRules) -> RunResult {
    let latency = outcome.total.latency_ns;
    RunResult {
        achieved: outcome.total.iops,
        mean_ns: latency.map(|latency| latency.mean),
        p99_ns: latency.map(|latency| latency.p99 as f64),
        limited_ns: latency.and_then(|latency| rules.slo.map(|slo| slo.figure.value_in(&latency))),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::search::apply::fake::{Fake, spec};

    fn rules() -> SaturationRules {
        SaturationRules { poisson: false, ..SaturationRules::new(5.0) }
    }

    /// 20,000 operations a second, with the latency of M/M/1.
    fn server(spec: &LoadSpec) -> (f64, u64) {
        match spec.rate {
            None => (20_000.0, 800_000),
            Some(rate) if rate.per_second >= 20_000.0 => (20_000.0, 500_000_000),
            Some(rate) => {
                let latency = Duration::from_secs_f64(1.0 / (20_000.0 - rate.per_second));
                (rate.per_second, u64::try_from(latency.as_nanos()).unwrap())
            }
        }
    }

    #[test]
    fn a_server_s_saturation_and_curve_are_found() {
        let mut seeds = Vec::new();
        let stop = AtomicBool::new(false);
        let found = saturate(&mut Fake(server), &spec(), rules(), &stop, &mut |run| {
            assert!(run.number <= run.most);
            seeds.push(run.outcome.seed);
        })
        .unwrap();
        assert!((0.97..=1.0).contains(&(found.rate / 20_000.0)), "{}", found.rate);
        assert_eq!(found.curve.len(), 12);
        let knee = found.knee.unwrap();
        assert!((knee.rate / 20_000.0 - 0.5).abs() < 0.05, "{knee:?}");
        seeds.sort_unstable();
        seeds.dedup();
        assert!(seeds.len() > 20, "every run draws anew");
    }

    #[test]
    fn an_engine_that_does_not_pace_is_found_out() {
        let stop = AtomicBool::new(false);
        let mut calls = 0;
        let mut load = Fake(|_: &LoadSpec| {
            calls += 1;
            (if calls > 3 { 40_000.0 } else { 20_000.0 }, 1_000)
        });
        let error = saturate(&mut load, &spec(), rules(), &stop, &mut |_| {}).unwrap_err();
        assert!(matches!(error, SearchError::NotPaced { .. }), "{error}");
    }

    #[test]
    fn a_target_too_fast_for_any_rate_is_said_to_be() {
        let stop = AtomicBool::new(false);
        let mut load = Fake(|_: &LoadSpec| (2.0 * MAX_RATE, 1_000));
        let error = saturate(&mut load, &spec(), rules(), &stop, &mut |_| {}).unwrap_err();
        assert!(matches!(error, SearchError::TooFast { per_second } if per_second > MAX_RATE), "{error}");
    }

    #[test]
    fn a_stop_is_obeyed_before_the_next_run() {
        let stop = AtomicBool::new(false);
        let mut runs = 0;
        let error = saturate(&mut Fake(server), &spec(), rules(), &stop, &mut |_| {
            runs += 1;
            stop.store(runs == 2, Ordering::Relaxed);
        });
        assert_eq!((error, runs), (Err(SearchError::Stopped), 2));
    }
}

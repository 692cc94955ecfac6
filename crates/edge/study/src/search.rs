//! Searches that measure one target again and again: the highest rate that it keeps up with, and its whole surface.

use std::fmt::{Debug, Display};
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;
use virtbench_model::{
    FittedSurface, Probe, RunResult, Saturation, SaturationRules, SaturationSearch, SurfaceFit,
};
use virtbench_record::{LoadOutcome, PointKey};
use virtbench_workload::{AccessLine, AccessSpec, Arrivals, LoadSpec, MAX_RATE, Rate};

/// Applies loads to one target, one after the other.
pub trait Load {
    /// Why a load could not be applied at all.
    type Error: Debug + Display;

    /// Applies a load and returns what came of it.
    ///
    /// # Errors
    /// The load could not be applied; operations that failed are counted in the outcome.
    fn apply(&mut self, spec: &LoadSpec) -> Result<LoadOutcome, Self::Error>;
}

/// A search that ended before its time.
#[derive(Debug, Error, PartialEq)]
pub enum SearchError<E: Debug + Display> {
    /// A load could not be applied.
    #[error("{0}")]
    Load(E),
    /// Operations failed: figures of a target that errs say nothing of one that works.
    #[error("operations failed on {target}: {why}")]
    Operations {
        /// The target.
        target: String,
        /// The kinds of failures and their numbers.
        why: String,
    },
    /// More was done than was offered: the engine did not pace its operations.
    #[error(
        "{achieved:.0} operations a second were completed where {offered:.0} were offered: the load was not \
         applied as an open loop, a defect of virtbench"
    )]
    NotPaced {
        /// Operations per second offered.
        offered: f64,
        /// Operations per second completed.
        achieved: f64,
    },
    /// The search reached a rate that no load can offer.
    #[error(
        "the target does more than an open loop can offer ({per_second:.0} of at most {MAX_RATE:.0} operations a \
         second): a null target has no saturation to be found; give it a latency with --fault delay=50us@100%, or \
         name a slower target"
    )]
    TooFast {
        /// The rate that was to be offered, operations per second.
        per_second: f64,
    },
    /// It was asked to stop.
    #[error("stopped before the search was over")]
    Stopped,
}

/// Applies one load of a search and refuses an outcome that a search must not be built on.
pub(crate) fn apply_clean<L: Load>(
    load: &mut L,
    spec: &LoadSpec,
) -> Result<LoadOutcome, SearchError<L::Error>> {
    let outcome = load.apply(spec).map_err(SearchError::Load)?;
    if outcome.errors > 0 {
        let kinds: Vec<String> =
            outcome.error_kinds.iter().map(|(name, count)| format!("{count} x {name}")).collect();
        return Err(SearchError::Operations { target: outcome.target.path, why: kinds.join(", ") });
    }
    if outcome.interrupted {
        return Err(SearchError::Stopped);
    }
    if let Some(rate) = spec.rate {
        let achieved = outcome.total.iops;
        // Random arrivals in a short run may exceed their rate, but not by this.
        if achieved > 1.25 * rate.per_second + 20.0 {
            return Err(SearchError::NotPaced { offered: rate.per_second, achieved });
        }
    }
    Ok(outcome)
}

#[cfg(test)]
pub(crate) mod fake {
    //! A target that lives in a formula.

    use std::convert::Infallible;

    use virtbench_record::{DirectionStats, LoadOutcome, TargetFacts};
    use virtbench_units::LatencyRecorder;
    use virtbench_workload::LoadSpec;

    use super::Load;

    /// A load whose rate (operations per second) and latency (ns) are given by a function.
    pub(crate) struct Fake<F>(pub F);

    impl<F: FnMut(&LoadSpec) -> (f64, u64)> Load for Fake<F> {
        type Error = Infallible;

        fn apply(&mut self, spec: &LoadSpec) -> Result<LoadOutcome, Infallible> {
            let (iops, latency_ns) = (self.0)(spec);
            let mut latency = LatencyRecorder::new();
            latency.record(latency_ns);
            let bytes_per_second = iops * spec.access.largest_block_bytes() as f64;
            let latency_ns = latency.summary();
            let total = DirectionStats { iops, bytes_per_second, latency_ns, ..DirectionStats::default() };
            Ok(LoadOutcome {
                total,
                ..LoadOutcome::empty(spec.clone(), TargetFacts::null(spec.region_bytes))
            })
        }
    }

    /// A load of 4 KiB random reads for tests.
    pub(crate) fn spec() -> LoadSpec {
        use virtbench_workload::{AccessLine, AccessSpec};
        LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), 1 << 30)
    }
}

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

/// Measured points below which no precision is believed.
const LEAST_POINTS: usize = 16;

/// What is wanted of a surface, and what it may cost.
#[derive(Debug, Clone, PartialEq)]
pub struct SurfacePlan {
    /// Every point of the surface.
    pub points: Vec<PointKey>,
    /// The load at each point; its access specification is replaced.
    pub base: LoadSpec,
    /// The most measurements; a point that the others contradict takes several.
    pub budget: usize,
    /// The median error over the other points at which to stop, as a share.
    pub error: f64,
}

/// Why no further point was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The surface is as precise as was asked for.
    Precise,
    /// The budget is spent.
    Budget,
    /// There is no other point.
    Complete,
}

/// A surface and what it is made of.
#[derive(Debug)]
pub struct MeasuredSurface {
    /// The fitted surface, in bytes per second; none where no point moved anything.
    pub fitted: Option<FittedSurface>,
    /// What was measured, in order.
    pub runs: Vec<(PointKey, LoadOutcome)>,
    /// Why it ended.
    pub ended: Ended,
}

/// The load of a point.
#[must_use]
pub fn load_at(base: &LoadSpec, point: PointKey) -> LoadSpec {
    let line =
        AccessLine::new(point.block_bytes, f64::from(point.read_percent), f64::from(point.random_percent));
    LoadSpec { access: AccessSpec::single(line), ..base.clone() }
}

/// Measures points of the plan, each chosen by what the ones before have shown, until the surface is
/// precise enough or the budget is spent. `on_run` is called with each.
///
/// # Errors
/// A load could not be applied, operations failed, or `stop` was set.
pub fn measure_surface<L: Load>(
    load: &mut L,
    plan: &SurfacePlan,
    stop: &AtomicBool,
    on_run: &mut dyn FnMut(usize, PointKey, &LoadOutcome),
) -> Result<MeasuredSurface, SearchError<L::Error>> {
    let mut fit = SurfaceFit::new(&plan.points);
    let mut runs = Vec::new();
    let ended = loop {
        if is_precise(&fit, plan.error) {
            break Ended::Precise;
        }
        let Some(point) = fit.next_point() else { break Ended::Complete };
        if runs.len() >= plan.budget {
            break Ended::Budget;
        }
        if stop.load(Ordering::Relaxed) {
            return Err(SearchError::Stopped);
        }
        let mut spec = load_at(&plan.base, point);
        spec.seed = spec.seed.wrapping_add(runs.len() as u64);
        let outcome = apply_clean(load, &spec)?;
        fit.observe(point, outcome.total.bytes_per_second);
        on_run(runs.len() + 1, point, &outcome);
        runs.push((point, outcome));
    };
    Ok(MeasuredSurface { fitted: fit.surface(), runs, ended })
}

/// Whether both the fit's own expectation and what leaving out measured points shows are within the
/// error. The latter covers points at the rim, where errors are larger, so it is the stricter one.
fn is_precise(fit: &SurfaceFit, error: f64) -> bool {
    fit.measured() >= LEAST_POINTS.min(fit.grid().len())
        && fit
            .surface()
            .is_some_and(|surface| surface.expected_error <= error && surface.left_out_error <= error)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use virtbench_units::Random;

    use super::*;
    use crate::search::fake::{Fake, spec};
    use crate::studies::grid::definition::Grid;

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

    fn plan(budget: usize, error: f64) -> SurfacePlan {
        let grid = Grid::paper();
        SurfacePlan { points: grid.points(), base: spec(), budget, error }
    }

    /// A disk that seeks, with peaks at sequential reads and writes.
    fn iops(spec: &LoadSpec) -> f64 {
        let line = &spec.access.lines[0];
        let (read, random) = (line.read_percent / 100.0, line.random_percent / 100.0);
        let mixed = if random == 0.0 { 8.0 * read * (1.0 - read) } else { 0.0 };
        1.0 / (random * 3e-3 + (1.0 - random) * (1e-4 + line.size_bytes as f64 / 5e7) * (1.0 + mixed))
    }

    #[test]
    fn it_stops_when_the_surface_is_as_precise_as_asked_and_is_so() {
        for seed in 0..10 {
            let mut random = Random::new(seed);
            let mut load = Fake(|spec: &LoadSpec| (iops(spec) * (0.98 + 0.04 * random.unit()), 1_000));
            let found =
                measure_surface(&mut load, &plan(100, 0.05), &AtomicBool::new(false), &mut |_, _, _| {});
            let found = found.unwrap();
            assert_eq!(found.ended, Ended::Precise);
            assert!((16..=45).contains(&found.runs.len()), "{}", found.runs.len());
            let mut errors: Vec<f64> = found
                .fitted
                .unwrap()
                .points
                .iter()
                .filter(|point| point.measured.is_none())
                .map(|point| {
                    let truth = iops(&load_at(&spec(), point.point)) * point.point.block_bytes as f64;
                    (point.value / truth - 1.0).abs()
                })
                .collect();
            errors.sort_unstable_by(f64::total_cmp);
            assert!(errors[errors.len() / 2] <= 0.05, "seed {seed}: {}", errors[errors.len() / 2]);
        }
    }

    #[test]
    fn the_budget_is_kept() {
        let mut load = Fake(|spec: &LoadSpec| (iops(spec), 1_000));
        let mut told = 0;
        let found =
            measure_surface(&mut load, &plan(12, 1e-9), &AtomicBool::new(false), &mut |n, _, _| told = n)
                .unwrap();
        assert_eq!((found.ended, found.runs.len(), told), (Ended::Budget, 12, 12));
        let points = found.fitted.unwrap().points;
        assert_eq!(points.len(), 100);
        assert_eq!(points.iter().filter(|point| point.measured.is_some()).count(), 12);
    }

    #[test]
    fn a_dead_target_has_no_surface_and_no_endless_loop() {
        let mut load = Fake(|_: &LoadSpec| (0.0, 1));
        let found =
            measure_surface(&mut load, &plan(1_000, 0.05), &AtomicBool::new(false), &mut |_, _, _| {});
        let found = found.unwrap();
        assert_eq!((found.ended, found.runs.len(), found.fitted), (Ended::Complete, 100, None));
    }

    #[test]
    fn a_stop_is_obeyed() {
        let mut load = Fake(|spec: &LoadSpec| (iops(spec), 1_000));
        let error = measure_surface(&mut load, &plan(30, 0.05), &AtomicBool::new(true), &mut |_, _, _| {});
        assert!(matches!(error, Err(SearchError::Stopped)));
    }
}

//! A throughput surface from some of its points: the runs behind [`SurfaceFit`].

use std::sync::atomic::{AtomicBool, Ordering};

use virtbench_model::{FittedSurface, SurfaceFit};
use virtbench_record::{LoadOutcome, PointKey};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use crate::search::apply::{Load, SearchError, apply_clean};

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
    use super::*;
    use crate::search::apply::fake::{Fake, spec};
    use crate::studies::grid::definition::Grid;
    use virtbench_units::Random;

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

//! `virtbench surface`

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use serde::Serialize;
use virtbench_engine::TargetRequest;
use virtbench_model::{FittedPoint, FittedSurface, MAX_GRID_POINTS};
use virtbench_record::{LoadOutcome, PointKey, TargetFacts};
use virtbench_study::{Ended, Grid, MeasuredSurface, SurfacePlan, load_at, measure_surface};
use virtbench_units::rounded;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use super::saturate::{Searched, failure};
use super::{grid, load};
use crate::args::shape::SurfaceArgs;
use crate::exit::{Failure, Kind, Outcome};
use crate::say::{print_json, tell};
use crate::text_table::{TextTable, right};
use crate::{interrupt, progress};

/// Times of a point where neither the command line nor a grid file says any, in nanoseconds: the
/// paper's three minutes are for the paper's hundred points.
const DEFAULT_TIMES_NS: (u64, u64) = (500_000_000, 3_000_000_000);

/// Measures the points that tell most, and prints the surface.
pub fn execute(args: &SurfaceArgs) -> Outcome {
    let grid = grid::read(&args.grid)?;
    let points = grid.points();
    if points.len() > MAX_GRID_POINTS {
        let message =
            format!("--grid {}: {} points are more than {MAX_GRID_POINTS}", args.grid, points.len());
        return Err(Failure::message(Kind::Usage, message));
    }
    let target = load::open_request(
        TargetRequest {
            path: args.target.clone(),
            size_bytes: args.common.size,
            direct: !args.common.buffered,
            reads: points.iter().any(|point| point.read_percent > 0),
            writes: points.iter().any(|point| point.read_percent < 100),
            allow_overwrite: args.common.allow_overwrite,
        },
        args.common.grow,
    )?;
    let base = base(args, &grid, target.facts());
    for point in &points {
        load_at(&base, *point).validate().map_err(|error| Failure::new(Kind::Usage, error))?;
    }
    let budget = budget(points.len(), args.budget);
    let seconds = (base.ramp_ns + base.time_ns) as f64 / 1e9 * budget as f64;
    tell!("at most {budget} measurements for {} points, {seconds:.0} s", points.len());
    let plan = SurfacePlan { points, base, budget, error: args.error };
    let bar = progress::counted(budget, "measuring");
    let found =
        measure_surface(&mut Searched(&target), &plan, interrupt::flag(), &mut |number, point, outcome| {
            let rate = outcome.total.bytes_per_second / 1e6;
            progress::step(&bar, format!("point {number}: {point}: {rate:.2} MB/s"));
        });
    bar.finish_and_clear();
    let found = found.map_err(failure)?;
    let fitted = found
        .fitted
        .as_ref()
        .ok_or_else(|| Failure::message(Kind::Target, "no point moved any data: there is no surface"))?;
    if let Some(path) = &args.csv {
        write_csv(path, fitted).with_context(|| format!("cannot write {}", path.display()))?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        print_json(&Report::new(fitted, &found, &plan, target.facts()))?;
    } else {
        write_tables(&mut out, &grid, fitted)?;
        write_conclusion(&mut out, fitted, &found)?;
    }
    Ok(())
}

fn base(args: &SurfaceArgs, grid: &Grid, facts: &TargetFacts) -> LoadSpec {
    let from_file = !["paper", "quick"].contains(&args.grid.as_str());
    let times = if from_file { (grid.ramp_ns, grid.time_ns) } else { DEFAULT_TIMES_NS };
    let time_ns = args.time.unwrap_or(times.1);
    LoadSpec {
        outstanding: args.common.outstanding,
        workers: args.common.workers,
        ramp_ns: args.ramp.unwrap_or(times.0),
        time_ns,
        interval_ns: (time_ns / 10).max(1_000_000),
        engine: args.common.engine.into(),
        direct: facts.direct,
        seed: args.common.seed.unwrap_or_else(load::drawn_seed),
        ..LoadSpec::new(
            AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)),
            args.common.size.unwrap_or(facts.size_bytes),
        )
    }
}

/// How many points a share of the grid is, at least one.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // at most the number of points
fn budget(points: usize, share: f64) -> usize {
    ((points as f64 * share + 1e-9).floor() as usize).max(1)
}

/// One table for each block size, as the papers' surfaces: reads across, random seeks down.
fn write_tables(out: &mut impl Write, grid: &Grid, fitted: &FittedSurface) -> io::Result<()> {
    for &block_bytes in &grid.blocks_bytes {
        writeln!(out, "{}, MB/s (* measured)", virtbench_units::format_bytes(block_bytes))?;
        let mut table =
            TextTable::new(0, &[&[right(10)][..], &vec![right(20); grid.read_percents.len()]].concat());
        let reads = grid.read_percents.iter().map(|read| format!("{read} % read"));
        table.row(std::iter::once("random".to_owned()).chain(reads));
        for &random_percent in &grid.random_percents {
            let cells = grid.read_percents.iter().map(|&read_percent| {
                let key = PointKey { block_bytes, read_percent, random_percent };
                fitted.points.iter().find(|point| point.point == key).map_or_else(String::new, cell)
            });
            table.row(std::iter::once(format!("{random_percent} %")).chain(cells));
        }
        writeln!(out, "{table}\n")?;
    }
    Ok(())
}

/// A prediction in MB/s, with by how many percent it may have to be raised to reach its upper bound; the
/// lower one is as many times less.
fn cell(point: &FittedPoint) -> String {
    let percent = 100.0 * (point.span.high / point.value - 1.0);
    let mark = if point.measured.is_some() { '*' } else { ' ' };
    let megabytes = point.value / 1e6;
    let digits = if megabytes < 10.0 { 2 } else { 1 };
    format!("{megabytes:.digits$} +-{percent:.0}%{mark}")
}

fn write_conclusion(out: &mut impl Write, fitted: &FittedSurface, found: &MeasuredSurface) -> io::Result<()> {
    writeln!(
        out,
        "{} measurements at {} of {} points ({}); the others should be off by {:.1} % (median), and the measured ones would \
         have been by {:.1} % had they been left out; noise of one measurement {:.1} %; +- is the factor of 95 % bounds, which in simulations hold 94 % of the truths and \
         more with noise up to 2 %, 90 to 92 % with 8 %",
        found.runs.len(),
        fitted.points.iter().filter(|point| point.measured.is_some()).count(),
        fitted.points.len(),
        ended(found.ended),
        100.0 * fitted.expected_error,
        100.0 * fitted.left_out_error,
        100.0 * fitted.noise
    )
}

fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Precise => "precise enough",
        Ended::Budget => "budget spent",
        Ended::Complete => "all of them",
    }
}

/// A point for JSON and CSV; throughput in bytes per second, bounds as in [`FittedPoint::span`].
#[derive(Serialize)]
struct PointReport {
    block_bytes: u64,
    read_percent: u8,
    random_percent: u8,
    bytes_per_second: f64,
    low: f64,
    high: f64,
    expected_error_percent: f64,
    measured_bytes_per_second: Option<f64>,
}

impl From<&FittedPoint> for PointReport {
    fn from(point: &FittedPoint) -> Self {
        Self {
            block_bytes: point.point.block_bytes,
            read_percent: point.point.read_percent,
            random_percent: point.point.random_percent,
            bytes_per_second: rounded(point.value),
            low: rounded(point.span.low),
            high: rounded(point.span.high),
            expected_error_percent: rounded(100.0 * point.expected_error),
            measured_bytes_per_second: point.measured.map(rounded),
        }
    }
}

fn write_csv(path: &Path, fitted: &FittedSurface) -> anyhow::Result<()> {
    let mut writer = csv::Writer::from_writer(File::create(path)?);
    for point in &fitted.points {
        writer.serialize(PointReport::from(point))?;
    }
    writer.flush()?;
    Ok(())
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    points: Vec<PointReport>,
    expected_error_percent: f64,
    left_out_error_percent: f64,
    noise_percent: f64,
    ended: &'static str,
    measured: Vec<Run<'a>>,
    target: &'a TargetFacts,
    spec: &'a LoadSpec,
}

/// A measured point, in the order of measuring.
#[derive(Serialize)]
struct Run<'a> {
    point: &'a PointKey,
    bytes_per_second: f64,
    iops: f64,
    mean_latency_ns: Option<f64>,
    seed: u64,
    notes: &'a [String],
}

impl<'a> Run<'a> {
    fn new((point, outcome): &'a (PointKey, LoadOutcome)) -> Self {
        Self {
            point,
            bytes_per_second: outcome.total.bytes_per_second,
            iops: outcome.total.iops,
            mean_latency_ns: outcome.total.latency_ns.map(|latency| latency.mean),
            seed: outcome.seed,
            notes: &outcome.notes,
        }
    }
}

impl<'a> Report<'a> {
    fn new(
        fitted: &FittedSurface,
        found: &'a MeasuredSurface,
        plan: &'a SurfacePlan,
        target: &'a TargetFacts,
    ) -> Self {
        Self {
            points: fitted.points.iter().map(PointReport::from).collect(),
            expected_error_percent: 100.0 * fitted.expected_error,
            left_out_error_percent: 100.0 * fitted.left_out_error,
            noise_percent: 100.0 * fitted.noise,
            ended: ended(found.ended),
            measured: found.runs.iter().map(Run::new).collect(),
            target,
            spec: &plan.base,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::budget;

    #[test]
    fn a_budget_is_a_share_of_the_points() {
        assert_eq!(budget(100, 0.3), 30);
        assert_eq!(budget(18, 0.3), 5);
        assert_eq!((budget(2, 0.01), budget(7, 1.0)), (1, 7));
    }
}

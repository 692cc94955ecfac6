//! How well some points of a surface predict the others, on a real target.
//!
//! Measures paper 1's hundred points three times, in orders drawn by lot: the first pass is what a
//! search may see (the second where it measures a point again), the third is the truth it is held
//! against. Then replays the search, and beside it as many points drawn by lot.
//!
//! ```text
//! cargo run --release -p virtbench-study --example surface_replay -- FILE [TIME] [OUTSTANDING]
//! cargo run --release -p virtbench-study --example surface_replay -- FILE.surface.csv
//! ```
//!
//! FILE is made with 1 GiB where it does not exist; TIME (default 300ms) is the measuring time of a
//! point: the default takes about two minutes. Keep the machine quiet meanwhile. All passes are kept
//! in FILE.surface.csv, from which the second form replays them without measuring.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use virtbench_engine::{Control, Target, TargetRequest, run};
use virtbench_model::SurfaceFit;
use virtbench_record::PointKey;
use virtbench_study::{Grid, load_at};
use virtbench_units::{Random, parse_duration_ns};
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

/// Throughput in bytes per second by point.
type Pass = BTreeMap<PointKey, f64>;

/// How often points are drawn by lot.
const DRAWS: u64 = 20;
/// How many of the hundred points the search may measure.
const BUDGETS: [usize; 4] = [15, 20, 25, 30];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path: PathBuf = arguments.next().context("usage: surface_replay FILE [TIME] [OUTSTANDING]")?.into();
    let time_ns = parse_duration_ns(&arguments.next().unwrap_or_else(|| "300ms".into()))?;
    let outstanding: u32 = arguments.next().map_or(Ok(16), |text| text.parse())?;
    if path.extension().is_some_and(|extension| extension == "csv") {
        let (seen, truth) = read(&path).with_context(|| format!("cannot replay {}", path.display()))?;
        return compare(&seen, &truth);
    }
    let record = PathBuf::from(format!("{}.surface.csv", path.display()));
    let request = TargetRequest {
        size_bytes: (!path.exists()).then_some(1 << 30),
        path,
        direct: true,
        reads: true,
        writes: true,
        allow_overwrite: false,
    };
    let target = Target::open(&request, |_, _| true)?;
    let base = LoadSpec {
        outstanding,
        ramp_ns: 100_000_000.min(time_ns / 3),
        time_ns,
        interval_ns: time_ns,
        direct: target.facts().direct,
        ..LoadSpec::new(AccessSpec::single(AccessLine::new(4096, 100.0, 100.0)), target.facts().size_bytes)
    };
    let points = Grid::paper().points();
    let seen = [measure(&points, &base, &target, 1)?, measure(&points, &base, &target, 2)?];
    let truth = measure(&points, &base, &target, 3)?;

    write(&record, &seen, &truth).with_context(|| format!("cannot write {}", record.display()))?;
    compare(&seen, &truth)
}

/// Prints how far the search and the lot are off, for several budgets.
fn compare(seen: &[Pass; 2], truth: &Pass) -> Result<()> {
    let points: Vec<PointKey> = truth.keys().copied().collect();
    let differences = points.iter().map(|point| (seen[0][point] / truth[point] - 1.0).abs()).collect();
    println!("two measurements of a point differ by {:.1} % (median)", 100.0 * median(differences));
    for budget in BUDGETS {
        let chosen = replay(&points, seen, truth, budget, None)?;
        let drawn = (0..DRAWS)
            .map(|seed| replay(&points, seen, truth, budget, Some(Random::new(seed))))
            .collect::<Result<Vec<f64>>>()?;
        println!(
            "{budget} of {} points: median error of the others {:.1} % chosen, {:.1} % by lot (median of {DRAWS})",
            points.len(),
            100.0 * chosen,
            100.0 * median(drawn)
        );
    }
    Ok(())
}

/// Keeps all passes.
fn write(path: &Path, seen: &[Pass; 2], truth: &Pass) -> Result<()> {
    let mut text = String::from("block_bytes,read_percent,random_percent,first,second,third\n");
    for (point, first) in &seen[0] {
        let PointKey { block_bytes, read_percent, random_percent } = point;
        let (second, third) = (seen[1][point], truth[point]);
        text += &format!("{block_bytes},{read_percent},{random_percent},{first},{second},{third}\n");
    }
    Ok(fs::write(path, text)?)
}

/// Reads what [`write`] kept.
fn read(path: &Path) -> Result<([Pass; 2], Pass)> {
    let (mut seen, mut truth) = ([Pass::new(), Pass::new()], Pass::new());
    for line in fs::read_to_string(path)?.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [block, read, random, first, second, third] = fields[..] else { bail!("not six fields: {line}") };
        let point = PointKey {
            block_bytes: block.parse()?,
            read_percent: read.parse()?,
            random_percent: random.parse()?,
        };
        seen[0].insert(point, first.parse()?);
        seen[1].insert(point, second.parse()?);
        truth.insert(point, third.parse()?);
    }
    Ok((seen, truth))
}

/// Measures every point once, in an order drawn by lot.
fn measure(points: &[PointKey], base: &LoadSpec, target: &Target, seed: u64) -> Result<Pass> {
    let mut random = Random::new(seed);
    let mut order: Vec<PointKey> = points.to_vec();
    let mut pass = Pass::new();
    while !order.is_empty() {
        let point = order.swap_remove(usize::try_from(random.below(order.len() as u64))?);
        let spec = LoadSpec { seed: random.next_u64(), ..load_at(base, point) };
        let outcome = run(&spec, target, &Control::new(spec.workers), 0, |_| ())?;
        ensure!(outcome.errors == 0, "{point}: {} operations failed", outcome.errors);
        pass.insert(point, outcome.total.bytes_per_second);
    }
    Ok(pass)
}

/// The median error over the points that were not seen, as a share of the truth.
fn replay(
    points: &[PointKey],
    seen: &[Pass; 2],
    truth: &Pass,
    budget: usize,
    lot: Option<Random>,
) -> Result<f64> {
    let mut fit = SurfaceFit::new(points);
    let mut left: Vec<PointKey> = points.to_vec();
    let mut lot = lot;
    for _ in 0..budget {
        let point = match &mut lot {
            Some(random) => left[usize::try_from(random.below(left.len() as u64))?],
            None => fit.next_point().context("no point is left")?,
        };
        let again = !left.contains(&point);
        left.retain(|other| *other != point);
        // A point at which nothing moved costs its place in the budget and teaches nothing.
        fit.observe(point, seen[usize::from(again)][&point]);
    }
    let surface = fit.surface().context("no surface")?;
    let open = surface.points.iter().filter(|point| point.measured.is_none() && truth[&point.point] > 0.0);
    Ok(median(open.map(|point| (point.value / truth[&point.point] - 1.0).abs()).collect()))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

//! How well some points of a surface predict the others, on a real target.
//!
//! Measures [ESX Disk 2003]'s hundred points several times, each pass in an order drawn by lot: the first two are
//! what a search may see (the second where it measures a point again). One measurement is too uncertain
//! to be a truth, so the truth is the geometric mean of all later passes, which the search never sees.
//! Then replays the search, and beside it as many points drawn by lot.
//!
//! ```text
//! cargo run --release -p virtbench-study --example surface_replay -- FILE [TIME] [OUTSTANDING] [PASSES]
//! cargo run --release -p virtbench-study --example surface_replay -- FILE.surface.csv
//! ```
//!
//! FILE is made with 1 GiB where it does not exist; TIME (default 500ms) is the measuring time of a
//! point, PASSES (default 6) how often each is measured: the defaults take about six minutes. Keep the
//! machine quiet meanwhile. All passes are kept in FILE.surface.csv, from which the second form replays
//! them without measuring.

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

/// Passes that a search may see.
const SEEN: usize = 2;
/// How often points are drawn by lot.
const DRAWS: u64 = 20;
/// How many of the hundred points the search may measure.
const BUDGETS: [usize; 4] = [15, 20, 25, 30];

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path: PathBuf =
        arguments.next().context("usage: surface_replay FILE [TIME] [OUTSTANDING] [PASSES]")?.into();
    let time_ns = parse_duration_ns(&arguments.next().unwrap_or_else(|| "500ms".into()))?;
    let outstanding: u32 = arguments.next().map_or(Ok(16), |text| text.parse())?;
    let passes: u64 = arguments.next().map_or(Ok(6), |text| text.parse())?;
    ensure!(
        (3..=100).contains(&passes),
        "{passes} passes: 3 to 100 are possible, two of them for the search"
    );
    if path.extension().is_some_and(|extension| extension == "csv") {
        return compare(&read(&path).with_context(|| format!("cannot replay {}", path.display()))?);
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
    let mut measured = Vec::new();
    for pass in 1..=passes {
        measured.push(measure(&points, &base, &target, pass)?);
        write(&record, &measured).with_context(|| format!("cannot write {}", record.display()))?;
    }
    compare(&measured)
}

/// Prints how far the search and the lot are off, for several budgets. Every pass is the first once, so
/// that no figure hangs on which passes the search happened to see.
fn compare(passes: &[Pass]) -> Result<()> {
    ensure!(passes.len() > SEEN, "{} passes: a search needs two, the truth at least one more", passes.len());
    let points: Vec<PointKey> = passes[0].keys().copied().collect();
    let mut once = Vec::new();
    let (mut chosen, mut drawn) = (vec![Vec::new(); BUDGETS.len()], vec![Vec::new(); BUDGETS.len()]);
    for first in 0..passes.len() {
        let mut turned = passes.to_vec();
        turned.rotate_left(first);
        let (seen, held_out) = turned.split_at(SEEN);
        let truth: Pass = points.iter().map(|point| (*point, mean(held_out, point))).collect();
        once.push(median(points.iter().map(|point| (seen[0][point] / truth[point] - 1.0).abs()).collect()));
        for (at, budget) in BUDGETS.into_iter().enumerate() {
            chosen[at].push(replay(&points, seen, &truth, budget, None)?);
            let by_lot =
                (0..DRAWS).map(|seed| replay(&points, seen, &truth, budget, Some(Random::new(seed))));
            drawn[at].push(median(by_lot.collect::<Result<_>>()?));
        }
    }
    println!(
        "{} points, {} passes; truth: the geometric mean of those that the search does not see",
        points.len(),
        passes.len()
    );
    println!("median error against it, median (range) over which passes are seen");
    println!("every point measured once          {}", spread(once));
    for ((budget, chosen), drawn) in BUDGETS.iter().zip(chosen).zip(drawn) {
        println!("the others from {budget} points, chosen   {}", spread(chosen));
        println!("the others from {budget} points, by lot   {}", spread(drawn));
    }
    Ok(())
}

/// Shares in percent: the median and the range.
fn spread(shares: Vec<f64>) -> String {
    let (low, high) = shares.iter().fold((f64::MAX, 0.0_f64), |(low, high), x| (low.min(*x), high.max(*x)));
    format!("{:4.1} % ({:.1} to {:.1})", 100.0 * median(shares), 100.0 * low, 100.0 * high)
}

/// The geometric mean of a point over passes; zero where nothing moved in one of them.
fn mean(passes: &[Pass], point: &PointKey) -> f64 {
    (passes.iter().map(|pass| pass[point].ln()).sum::<f64>() / passes.len() as f64).exp()
}

/// Keeps all passes.
fn write(path: &Path, passes: &[Pass]) -> Result<()> {
    let mut text = String::from("block_bytes,read_percent,random_percent");
    (1..=passes.len()).for_each(|number| text += &format!(",pass_{number}"));
    for point in passes[0].keys() {
        let PointKey { block_bytes, read_percent, random_percent } = point;
        text += &format!("\n{block_bytes},{read_percent},{random_percent}");
        passes.iter().for_each(|pass| text += &format!(",{}", pass[point]));
    }
    Ok(fs::write(path, text + "\n")?)
}

/// Reads what [`write`] kept.
fn read(path: &Path) -> Result<Vec<Pass>> {
    let mut passes = Vec::new();
    for line in fs::read_to_string(path)?.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [block, read, random, values @ ..] = &fields[..] else { bail!("no point: {line}") };
        let point = PointKey {
            block_bytes: block.parse()?,
            read_percent: read.parse()?,
            random_percent: random.parse()?,
        };
        passes.resize_with(values.len(), Pass::new);
        for (pass, value) in passes.iter_mut().zip(values) {
            pass.insert(point, value.parse()?);
        }
    }
    Ok(passes)
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
    seen: &[Pass],
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

use super::*;
use crate::test_support::normal;
use virtbench_units::Random;

/// A made-up storage system: throughput in bytes per second at a point.
type Truth = fn(PointKey) -> f64;

fn shares(point: PointKey) -> (f64, f64, f64) {
    (point.block_bytes as f64, f64::from(point.read_percent) / 100.0, f64::from(point.random_percent) / 100.0)
}

/// A single disk, as [ESX Disk 2003]'s Mojave: a seek costs milliseconds, sequential streams peak at pure
/// reads and pure writes and lose most of it when mixed.
fn disk(point: PointKey) -> f64 {
    let (bytes, read, random) = shares(point);
    let seek = 3.5e-3 * (1.0 - 0.35 * (1.0 - read));
    let mixed =
        if point.random_percent == 0 { 12.0 * read * (1.0 - read) } else { 1.5 * read * (1.0 - read) };
    bytes / (random * seek + (1.0 - random) * (6e-5 + bytes / 45e6) * (1.0 + mixed))
}

/// A SAN with read-ahead and a write cache, as Atacama: the peaks at the sequential rim are apart
/// from everything else.
fn san(point: PointKey) -> f64 {
    let (bytes, read, random) = shares(point);
    let sequential = match (point.read_percent, point.random_percent) {
        (100, 0) => 2.6e-5 + bytes / 95e6,
        (0, 0) => 4.0e-5 + bytes / 80e6,
        _ => 1.7e-4 + bytes / 60e6,
    };
    let seek = read * 1.9e-3 + (1.0 - read) * 1.3e-3;
    bytes / (random * seek + (1.0 - random) * sequential)
}

/// An array of many disks, as Thar: seeks overlap, so randomness costs little and writes cost more.
fn array(point: PointKey) -> f64 {
    let (bytes, read, random) = shares(point);
    let each = 9e-5 + bytes / 70e6;
    bytes / (each + random * (read * 2.2e-4 + (1.0 - read) * 4.5e-4) + 6e-5 * read * (1.0 - read))
}

/// A solid-state disk: the cost of an operation, a bandwidth limit, writes that stall reads.
fn flash(point: PointKey) -> f64 {
    let (bytes, read, random) = shares(point);
    let operation = 5.5e-6 + (1.0 - read) * 4e-6 * (1.0 + random);
    bytes / (operation + bytes / 2.2e9 + 6e-6 * read * (1.0 - read))
}

/// A disk behind a hypervisor that merges sequential writes, with a ceiling on operations.
fn merging(point: PointKey) -> f64 {
    let (bytes, read, random) = shares(point);
    let merged = if point.random_percent == 0 && point.read_percent == 0 { 0.35 } else { 1.0 };
    let operation: f64 = 2.2e-5 * merged + random * 3.0e-5 * read + (1.0 - read) * 1.5e-5 * merged;
    bytes / operation.max(8e-6) / (1.0 + bytes / 2e5)
}

const TRUTHS: [(&str, Truth); 5] =
    [("disk", disk), ("san", san), ("array", array), ("flash", flash), ("merging", merging)];

/// [ESX Disk 2003]'s grid (section 3.1).
fn paper_grid() -> Vec<PointKey> {
    let mut grid = Vec::new();
    for block_bytes in [1 << 10, 4 << 10, 8 << 10, 16 << 10] {
        for read_percent in [0, 25, 50, 75, 100] {
            for random_percent in [0, 25, 50, 75, 100] {
                grid.push(PointKey { block_bytes, read_percent, random_percent });
            }
        }
    }
    grid
}

/// A disk on the network: a round trip, a link's bandwidth, reads ahead where nothing seeks.
fn network(point: PointKey) -> f64 {
    let (bytes, read, random) = shares(point);
    let ahead = 1.0 - 0.6 * read * (1.0 - random);
    bytes / (4e-4 * ahead + bytes / 1.1e8 + 8e-5 * (1.0 - read))
}

/// A disk whose writes seek to a parity block and whose queue orders what is random.
fn parity(point: PointKey) -> f64 {
    let (bytes, read, random) = shares(point);
    let seek = 2.4e-3 * random.sqrt() * (1.0 + 1.6 * (1.0 - read));
    bytes / (seek + 1.1e-4 + bytes / 6e7 * (1.0 + 0.5 * (1.0 - read)))
}

/// Surfaces that came after kernel and priors were chosen. They have been looked at since, bounds were judged by them as
/// by the others, and so they are no held-out set.
const ADDED_LATER: [(&str, Truth); 2] = [("network", network), ("parity", parity)];

/// What is measured at a point: the truth and 2 % of noise.
fn measure(truth: Truth, point: PointKey, random: &mut Random) -> f64 {
    with_noise(truth, point, 0.02, random)
}

fn with_noise(truth: Truth, point: PointKey, noise: f64, random: &mut Random) -> f64 {
    truth(point) * (noise * normal(random)).exp()
}

/// Errors at the points that were not measured, as shares of the truth.
fn errors(surface: &FittedSurface, truth: Truth) -> Vec<f64> {
    let open = surface.points.iter().filter(|point| point.measured.is_none());
    open.map(|point| (point.value / truth(point.point) - 1.0).abs()).collect()
}

fn chosen(truth: Truth, points: usize, seed: u64) -> FittedSurface {
    let mut random = Random::new(seed);
    let mut fit = SurfaceFit::new(&paper_grid());
    for _ in 0..points {
        let point = fit.next_point().unwrap();
        assert!(fit.observe(point, measure(truth, point, &mut random)));
    }
    fit.surface().unwrap()
}

/// As `chosen`, of a target that stalls in one of ten measurements: half to nine tenths are missing.
fn chosen_with_stalls(truth: Truth, points: usize, seed: u64) -> FittedSurface {
    let mut random = Random::new(seed);
    let mut fit = SurfaceFit::new(&paper_grid());
    for _ in 0..points {
        let point = fit.next_point().unwrap();
        let stall = if random.below(10) == 0 { 0.1 + 0.4 * random.unit() } else { 1.0 };
        assert!(fit.observe(point, stall * measure(truth, point, &mut random)));
    }
    fit.surface().unwrap()
}

fn drawn(truth: Truth, points: usize, seed: u64) -> FittedSurface {
    let mut random = Random::new(seed);
    let mut fit = SurfaceFit::new(&paper_grid());
    fit.design.clear();
    while fit.measured() < points {
        let point = fit.grid[usize::try_from(random.below(100)).unwrap()];
        if !fit.measured.keys().any(|index| fit.grid[*index] == point) {
            assert!(fit.observe(point, measure(truth, point, &mut random)));
        }
    }
    fit.surface().unwrap()
}

/// Medians over 20 seeds of the median error with chosen and with drawn points, the worst median
/// error with chosen ones, and how many of the truths lay in their bounds.
fn trial(truth: Truth, points: usize) -> [f64; 4] {
    let (mut with_chosen, mut with_drawn, mut covered) = (Vec::new(), Vec::new(), Vec::new());
    for seed in 0..20 {
        let surface = chosen(truth, points, seed);
        let open = surface.points.iter().filter(|point| point.measured.is_none());
        covered.extend(open.map(|point| f64::from(u8::from(point.span.contains(truth(point.point))))));
        with_chosen.push(median(errors(&surface, truth)));
        with_drawn.push(median(errors(&drawn(truth, points, seed), truth)));
    }
    let worst = with_chosen.iter().copied().fold(0.0, f64::max);
    [median(with_chosen), median(with_drawn), worst, covered.iter().sum::<f64>() / covered.len() as f64]
}

#[test]
fn thirty_of_a_hundred_points_give_the_others_within_five_percent() {
    let mut gain = 0.0;
    for (name, truth) in TRUTHS {
        let [with_chosen, with_drawn, worst, covered] = trial(truth, 30);
        println!(
            "{name:<8} 30 of 100 points: median error {:.1} % (worst of 20 seeds {:.1} %), {:.1} % if the \
             points are drawn by lot; {:.0} % of the truths within their 95 % bounds",
            100.0 * with_chosen,
            100.0 * worst,
            100.0 * with_drawn,
            100.0 * covered
        );
        assert!(worst <= 0.05, "{name}: {worst}");
        assert!(covered > 0.85, "{name}: {covered}");
        gain += with_drawn / with_chosen / TRUTHS.len() as f64;
    }
    assert!(gain > 1.1, "choosing gains nothing over the lot: {gain}");
}

/// How many of the truths at points that were not measured lie in their bounds, over a few seeds.
fn covered(truth: Truth, points: usize, noise: f64, seeds: u64) -> f64 {
    let mut inside = Vec::new();
    for seed in 0..seeds {
        let mut random = Random::new(seed);
        let mut fit = SurfaceFit::new(&paper_grid());
        for _ in 0..points {
            let point = fit.next_point().unwrap();
            assert!(fit.observe(point, with_noise(truth, point, noise, &mut random)));
        }
        let surface = fit.surface().unwrap();
        let open = surface.points.iter().filter(|point| point.measured.is_none());
        inside.extend(open.map(|point| f64::from(u8::from(point.span.contains(truth(point.point))))));
    }
    inside.iter().sum::<f64>() / inside.len() as f64
}

#[test]
fn bounds_hold_as_many_truths_as_they_say() {
    for points in [20, 30, 60] {
        // With noise of 8 % the shape itself is in doubt: bounds then hold 90 % at least, as they say.
        for (noise, least) in [(0.02, 0.935), (0.08, 0.89)] {
            let all: Vec<(&str, f64)> = TRUTHS
                .iter()
                .chain(&ADDED_LATER)
                .map(|(name, truth)| (*name, covered(*truth, points, noise, 4)))
                .collect();
            let mean = all.iter().map(|(_, share)| share).sum::<f64>() / all.len() as f64;
            println!("{points} points, noise {noise}: {mean:.3} {all:.2?}");
            assert!(mean >= least, "{points} points, noise {noise}: {mean:.3} {all:.2?}");
        }
    }
}

#[test]
fn stalls_are_not_taken_for_the_shape_of_the_surface() {
    for (name, truth) in TRUTHS {
        let found: Vec<f64> =
            (0..20).map(|seed| median(errors(&chosen_with_stalls(truth, 30, seed), truth))).collect();
        let found = median(found);
        println!("{name:<8} one stall in ten: median error {:.1} %", 100.0 * found);
        assert!(found < 0.09, "{name}: {found}; taken as they are, stalls make it 10 to 16 %");
    }
}

#[test]
fn what_it_promises_to_be_off_by_is_what_it_is_off_by() {
    for (name, truth) in TRUTHS {
        for seed in 0..5 {
            let surface = chosen(truth, 24, seed);
            let found = median(errors(&surface, truth));
            assert!(found < 2.5 * surface.expected_error, "{name}: {found} for {}", surface.expected_error);
            assert!((0.002..0.1).contains(&surface.noise), "{name}: noise {}", surface.noise);
        }
    }
}

#[test]
fn the_first_points_are_the_corners_and_the_middle() {
    let fit = SurfaceFit::new(&paper_grid());
    assert_eq!(fit.design.len(), 10);
    let first: Vec<PointKey> = fit.design.iter().map(|index| fit.grid[*index]).collect();
    assert!(first.contains(&PointKey { block_bytes: 1 << 10, read_percent: 0, random_percent: 0 }));
    assert!(first.contains(&PointKey { block_bytes: 16 << 10, read_percent: 100, random_percent: 100 }));
}

#[test]
fn every_point_can_be_measured_and_then_there_is_no_next() {
    let mut random = Random::new(1);
    let mut fit = SurfaceFit::new(&paper_grid());
    let mut runs = 0;
    while let Some(point) = fit.next_point() {
        assert!(fit.observe(point, measure(disk, point, &mut random)));
        runs += 1;
        assert!(runs <= 300);
    }
    assert_eq!(fit.measured(), 100);
    let surface = fit.surface().unwrap();
    assert!(surface.expected_error.abs() < f64::EPSILON);
    assert!(surface.points.iter().all(|point| point.measured.is_some()));
}

#[test]
fn a_point_that_cannot_be_measured_is_not_asked_for_again() {
    let grid: Vec<PointKey> = paper_grid().into_iter().take(12).collect();
    let mut fit = SurfaceFit::new(&grid);
    let (mut asked, mut barred) = (Vec::new(), Vec::new());
    while let Some(point) = fit.next_point() {
        assert!(!barred.contains(&point), "{point} again");
        asked.push(point);
        let value = if asked.len() % 3 == 0 { 0.0 } else { disk(point) };
        assert_eq!(fit.observe(point, value), value > 0.0);
        if value <= 0.0 {
            barred.push(point);
        }
        assert!(asked.len() <= 36);
    }
    assert_eq!(fit.measured() + barred.len(), 12);
    assert_eq!(fit.surface().unwrap().points.len(), 12);
}

#[test]
fn strange_grids_are_borne() {
    assert_eq!(SurfaceFit::new(&[]).next_point(), None);
    assert_eq!(SurfaceFit::new(&[]).surface(), None);
    let point = PointKey { block_bytes: 4096, read_percent: 30, random_percent: 30 };
    let mut fit = SurfaceFit::new(&[point, point]);
    assert_eq!(fit.next_point(), Some(point));
    assert!(!fit.observe(PointKey { block_bytes: 1, ..point }, 5.0));
    assert!(!fit.observe(point, f64::NAN));
    assert!(fit.observe(point, 5.0));
    let surface = fit.surface().unwrap();
    assert!((surface.points[0].value - 5.0).abs() < 0.01, "{surface:?}");
}

#[test]
fn equal_values_everywhere_are_no_trouble() {
    let mut fit = SurfaceFit::new(&paper_grid());
    while fit.measured() < 30 {
        let point = fit.next_point().unwrap();
        assert!(fit.observe(point, 1e8));
    }
    let surface = fit.surface().unwrap();
    assert!(surface.points.iter().all(|point| (point.value / 1e8 - 1.0).abs() < 0.01));
}

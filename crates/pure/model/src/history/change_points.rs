//! Where a series of measurements, run after run, changed its level or spread: E-Divisive (D. S. Matteson and N. A. James, "A
//! Nonparametric Approach for Multiple Change Point Analysis of Multivariate Data", Journal of the American Statistical
//! Association 109(505), 2014).
//!
//! A stretch is split where the energy distance of its two parts is largest. Whether that is more than chance is told by
//! permutations: in a series without a change any order of its values is as likely as any other. The parts are split further
//! in the same way. Nothing is assumed of the distribution, and one stray value makes no change.
//!
//! Eighty series of two hundred values are to take a second. So a split is valued in n log n steps, by a tree of sums, and a change that
//! dwarfs every order that was drawn is not held against thousands more ([`SURE`]).

use virtbench_units::Random;

/// The fewest values between two changes.
const LEAST: usize = 3;
/// Of the orders that a split is held against, how many may be as uneven before it is taken for chance.
const CHANCES: usize = 6;
/// After so many orders a split is sure if it is so many times as uneven as the most uneven of them. The energy of orders falls off
/// like an exponential function, so one as uneven would be found among more than a million.
const SURE: (usize, f64) = (400, 3.0);
/// The most values that are looked at, the latest.
pub const MOST_VALUES: usize = 200;

/// Where a series is split, and how probable that is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Index of the first value after it.
    pub index: usize,
    /// How probable so large a difference is by chance, in a series without a change, at most.
    pub probability: f64,
}

/// The changes in a series, in order. A series without a change has one with a probability of `level`, between 0 and 1.
/// Values that are not finite have no place in a series; of very many the latest are looked at. `seed` determines the
/// permutations.
#[must_use]
pub fn change_points(values: &[f64], level: f64, seed: u64) -> Vec<ChangePoint> {
    let skipped = values.len().saturating_sub(MOST_VALUES);
    let values = &values[skipped..];
    if values.iter().any(|value| !value.is_finite()) {
        return Vec::new();
    }
    let mut random = Random::new(seed);
    let mut changes: Vec<ChangePoint> = Vec::new();
    let mut stretches = vec![(0, values.len())];
    while let Some((begin, end)) = stretches.pop() {
        let Some((at, probability)) = split(&values[begin..end], level, &mut random) else { continue };
        changes.push(ChangePoint { index: skipped + begin + at, probability });
        stretches.extend([(begin, begin + at), (begin + at, end)]);
    }
    changes.sort_by_key(|change| change.index);
    changes
}

/// Where a stretch is split, and how probable that is by chance; nothing where it is not improbable enough.
fn split(values: &[f64], level: f64, random: &mut Random) -> Option<(usize, f64)> {
    let mut stretch = Stretch::new(values);
    let (at, largest) = stretch.best_split()?;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above zero, and saturates")]
    let orders = (CHANCES as f64 / level).ceil() as usize;
    // The order that was measured is one of them.
    let (mut as_uneven, mut most) = (1, 0.0_f64);
    for drawn in 1..orders {
        shuffle(&mut stretch.order, random);
        let energy = stretch.best_split().map_or(0.0, |(_, energy)| energy);
        most = most.max(energy);
        as_uneven += usize::from(energy >= largest);
        if as_uneven > CHANCES {
            return None;
        }
        if drawn == SURE.0 && largest > SURE.1 * most {
            break;
        }
    }
    Some((at, as_uneven as f64 / orders as f64))
}

/// Values in some order.
struct Stretch {
    /// From the least to the greatest.
    sorted: Vec<f64>,
    /// For each place its value's index among the sorted ones.
    order: Vec<usize>,
    tree: Tree,
    /// The sums of distances within the first none, one, two, ... values, and within the last.
    sums: [Vec<f64>; 2],
}

impl Stretch {
    fn new(values: &[f64]) -> Self {
        let mut places: Vec<usize> = (0..values.len()).collect();
        places.sort_by(|one, other| values[*one].total_cmp(&values[*other]));
        let mut order = vec![0; values.len()];
        places.iter().enumerate().for_each(|(rank, place)| order[*place] = rank);
        // Around the middle one, so that sums of equal values are zero, and large ones leave no rounding.
        let middle = places.get(values.len() / 2).map_or(0.0, |place| values[*place]);
        let sorted = places.iter().map(|place| values[*place] - middle).collect();
        Self { sorted, order, tree: Tree::default(), sums: [Vec::new(), Vec::new()] }
    }

    /// The split with the largest energy distance, and that distance; nothing of too few values, or of values that are all the same.
    fn best_split(&mut self) -> Option<(usize, f64)> {
        let number = self.order.len();
        if number < 2 * LEAST {
            return None;
        }
        let Self { sorted, order, tree, sums: [before, from] } = self;
        sums_of_distances(order.iter(), sorted, tree, before);
        sums_of_distances(order.iter().rev(), sorted, tree, from);
        let all = before[number];
        let energy = |at: usize| {
            let (left, right) = (at as f64, (number - at) as f64);
            let between = (all - before[at] - from[number - at]) * 2.0 / (left * right);
            let within = |sum: f64, size: f64| sum * 2.0 / (size * (size - 1.0));
            let inside = within(before[at], left) + within(from[number - at], right);
            left * right / (left + right) * (between - inside)
        };
        let splits = (LEAST..=number - LEAST).map(|at| (at, energy(at)));
        let best = splits.max_by(|one, other| one.1.total_cmp(&other.1));
        // Sums of many values leave a little where there is nothing.
        best.filter(|(_, energy)| *energy > 1e-12 * all)
    }
}

/// The sums of the distances within the first none, one, two, ... of these values.
fn sums_of_distances<'a>(
    order: impl Iterator<Item = &'a usize>,
    sorted: &[f64],
    tree: &mut Tree,
    sums: &mut Vec<f64>,
) {
    tree.clear(sorted.len());
    sums.clear();
    sums.push(0.0);
    let (mut number, mut total, mut sum) = (0.0, 0.0, 0.0);
    for rank in order {
        let value = sorted[*rank];
        let (below, sum_below) = tree.up_to(*rank);
        sum += value * (2.0 * below - number) + total - 2.0 * sum_below;
        sums.push(sum);
        tree.add(*rank, value);
        (number, total) = (number + 1.0, total + value);
    }
}

/// How many values up to some rank were added, and their sum (P. M. Fenwick, "A New Data Structure for Cumulative Frequency Tables",
/// Software: Practice and Experience 24(3), 1994).
#[derive(Default)]
struct Tree {
    nodes: Vec<[f64; 2]>,
}

impl Tree {
    fn clear(&mut self, ranks: usize) {
        self.nodes.clear();
        self.nodes.resize(ranks + 1, [0.0; 2]);
    }

    fn add(&mut self, rank: usize, value: f64) {
        let mut at = rank + 1;
        while let Some([number, sum]) = self.nodes.get_mut(at) {
            *number += 1.0;
            *sum += value;
            at += at & at.wrapping_neg();
        }
    }

    fn up_to(&self, rank: usize) -> (f64, f64) {
        let (mut at, mut number, mut sum) = (rank + 1, 0.0, 0.0);
        while at > 0 {
            number += self.nodes[at][0];
            sum += self.nodes[at][1];
            at &= at - 1;
        }
        (number, sum)
    }
}

fn shuffle(values: &mut [usize], random: &mut Random) {
    for index in (1..values.len()).rev() {
        #[expect(clippy::cast_possible_truncation, reason = "below the length")]
        let other = random.below(index as u64 + 1) as usize;
        values.swap(index, other);
    }
}

#[cfg(test)]
#[path = "change_points_tests.rs"]
mod tests;

//! Where user code costs the same on both machines and entering the kernel does not: T = sum of k_j x_j over what an operation asks for.
//!
//! A guest whose processor is this host's own computes as fast as the host. What it pays for is each way into its kernel and back. So an
//! operation's time on the subject is a sum over its parts ([`PARTS`]). How much of each there is was counted on the reference. What
//! each costs on the subject follows from the reference applications, by non-negative least squares of relative errors over all of
//! them (Lawson and Hanson, "Solving Least Squares Problems", chapter 23). Nothing is fitted to the application itself.
//!
//! What nothing counts, the sum cannot know of: reads at places anywhere in a large file that is cached take a guest of User Mode Linux three
//! times as long as it says.
//!
//! Each reference is left out in turn and predicted from the others. What those are missed by whose time goes to the same parts is the
//! interval of an application like them. One that is unlike all of them gets twice what all are missed by.

use virtbench_record::{CostPart, Costs, Footprint, Profile, Reference};

use super::sampling::{SAMPLES, Sample, draws};
use super::similar_references::{NAMED, share_of};

/// With fewer references there is no telling what each part costs.
const FEWEST: usize = 15;

/// How many parts there are.
const COUNT: usize = 11;

/// Parts of an operation.
pub(super) const PARTS: [&str; COUNT] = [
    "user code",
    "the kernel's work on files and memory",
    "copying",
    "system calls",
    "names of files",
    "names made and removed",
    "page faults",
    "new processes",
    "reads and writes of the disk",
    "flushes of the disk",
    "waiting",
];
/// What each costs at least: no guest computes or copies faster than its host.
const LEAST: Amounts = [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0];
/// And at most: what waits for something else than its disk, as one that sleeps does, waits as long there. What stands still for the disk
/// waits for the subject's own, whose operations are parts.
const MOST: Amounts = {
    let mut most = [f64::INFINITY; COUNT];
    most[COUNT - 1] = 1.0;
    most
};
/// Kinds of kernel work that take a guest's kernel longer than a host's, besides being entered.
const FILES_AND_MEMORY: [&str; 6] =
    ["file system", "journal", "page cache", "allocation", "checksums", "names"];

/// How much there is of each part: seconds, or millions of those that are counted, so that a cost is a multiple or microseconds.
type Amounts = [f64; COUNT];

/// How far from a reference's shares of time an application's may lie for what the reference was missed by to count much.
const WIDTH: f64 = 0.2;
/// How much it counts at least.
const LEAST_WEIGHT: f64 = 0.02;
/// From here on it is unlike all references.
const UNLIKE: f64 = 0.45;
/// By how much an interval is wider then.
const UNLIKE_TIMES: f64 = 2.0;
/// How far from what a reference was missed by another like it may be: a deviation of the logarithm.
const BLUR: f64 = 0.04;
/// A factor of user code below this is none to speak of.
const AS_FAST: f64 = 2.0;
/// Rounds in which costs are made to agree with one another.
const ROUNDS: u32 = 2_000;

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Crossed {
    /// Subject's rate as a share of the reference's.
    pub ratio: f64,
    /// Draws of it, ascending.
    pub draws: Vec<f64>,
    /// What a second of the reference's work takes on the subject by part, in seconds.
    pub seconds: Amounts,
    /// Of that second on the reference: user code, kernel code, and the rest.
    pub reference_s: [f64; 3],
    /// How many references there were.
    pub references: usize,
    /// Those that are most alike.
    pub nearest: Vec<String>,
    /// Whether it is like none of them.
    pub is_unlike: bool,
    /// What references are missed by, as a standard deviation of the logarithm.
    pub spread: f64,
}

/// A reference with what an operation of it asks for, and how long that takes on the subject, in seconds.
struct Known<'a> {
    name: &'a str,
    amounts: Amounts,
    subject_s: f64,
}

impl<'a> Known<'a> {
    fn new(one: &'a Reference) -> Option<Self> {
        let amounts = amounts(&one.reference.footprint, one.reference.operations())?;
        Some(Self { name: &one.name, amounts, subject_s: 1.0 / one.subject.per_second })
    }

    /// The logarithm of its time over what these costs make of it.
    fn missed_by(&self, costs: &Amounts) -> f64 {
        (self.subject_s / total(costs, &self.amounts)).ln()
    }
}

/// What so many operations of a footprint ask for, each; `None` where that was not counted or the kernel not sampled.
fn amounts(seen: &Footprint, operations: f64) -> Option<Amounts> {
    let crossings = seen.crossings?;
    let [user_s, kernel_s] = seen.cpu_ns.map(|ns| ns as f64 / 1e9);
    let millions = |count: u64| count as f64 / 1e6;
    let files_s = kernel_s * FILES_AND_MEMORY.iter().map(|kind| share_of(seen, kind)).sum::<Option<f64>>()?;
    let disks = seen.disks?;
    let stalled_s = seen.stalls.map_or(0.0, |stalls| stalls.full_ns as f64 / 1e9);
    let all = [
        user_s,
        files_s,
        kernel_s * share_of(seen, "copying")?,
        millions(crossings.calls),
        millions(crossings.names),
        millions(crossings.changes),
        millions(crossings.faults),
        millions(crossings.forks),
        millions(disks.reads + disks.writes),
        millions(disks.flushes),
        (seen.elapsed_ns as f64 / 1e9 - user_s - kernel_s - stalled_s).max(0.0),
    ];
    Some(all.map(|amount| amount / operations))
}

fn total(costs: &Amounts, amounts: &Amounts) -> f64 {
    costs.iter().zip(amounts).map(|(cost, amount)| cost * amount).sum()
}

/// What each part costs on the subject: the least squares of relative errors, each cost from [`LEAST`] to [`MOST`], by coordinate descent.
fn fit<'a, 'b: 'a>(known: impl Iterator<Item = &'a Known<'b>> + Clone) -> Amounts {
    let relative = |one: &Known<'_>| one.amounts.map(|amount| amount / one.subject_s);
    let mut products = [[0.0; COUNT]; COUNT];
    let mut sums = [0.0; COUNT];
    for row in known.map(relative) {
        for i in 0..COUNT {
            sums[i] += row[i];
            (0..COUNT).for_each(|j| products[i][j] += row[i] * row[j]);
        }
    }
    let mut costs = LEAST;
    for _ in 0..ROUNDS {
        for i in (0..COUNT).filter(|i| products[*i][*i] > 0.0) {
            let others: f64 = (0..COUNT).filter(|j| *j != i).map(|j| products[i][j] * costs[j]).sum();
            costs[i] = ((sums[i] - others) / products[i][i]).clamp(LEAST[i], MOST[i]);
        }
    }
    costs
}

/// Shares of time, of which the square roots are compared.
fn roots(seconds: &Amounts) -> Amounts {
    let all: f64 = seconds.iter().sum();
    seconds.map(|part| (part / all.max(f64::MIN_POSITIVE)).sqrt())
}

/// Hellinger's distance: 0 of the same shares, 1 of those that have nothing in common.
fn distance(a: &Amounts, b: &Amounts) -> f64 {
    let squares: f64 = roots(a).iter().zip(roots(b)).map(|(a, b)| (a - b).powi(2)).sum();
    (squares / 2.0).sqrt()
}

/// A reference beside an application.
struct Neighbour<'a> {
    name: &'a str,
    distance: f64,
    missed_by: f64,
}

/// Whether user code takes about as long on the subject, so that this is the method: by the quarter of the pieces that do it best, as others
/// have their memory faulted in.
pub(super) fn computes_as_fast(costs: &Costs) -> bool {
    let user = costs.costs.iter().filter(|cost| cost.part == CostPart::User);
    let mut factors: Vec<f64> = user.map(|cost| cost.subject_ns / cost.reference_ns).collect();
    factors.sort_unstable_by(f64::total_cmp);
    factors.get(factors.len() / 4).is_some_and(|factor| *factor < AS_FAST)
}

/// An application and the references that tell what its parts cost.
pub(super) struct Sum<'a> {
    seen: &'a Footprint,
    asked: Amounts,
    known: Vec<Known<'a>>,
}

impl<'a> Sum<'a> {
    /// # Errors
    /// What is needed.
    pub(super) fn new(profile: &'a Profile, costs: &'a Costs) -> Result<Self, &'static str> {
        const COUNTS: &str = "a profile of an application whose system calls were counted and whose kernel was sampled, as root (`study predictions` \
                              counts them)";
        if costs.vcpus > 1 {
            return Err("costs of a VM with one processor: on several the parts of its work overlap");
        }
        let seen = profile.footprint.value().ok_or(COUNTS)?;
        let asked = amounts(seen, seen.elapsed_ns as f64 / 1e9).ok_or(COUNTS)?;
        let known: Vec<Known<'_>> = costs.references.iter().filter_map(Known::new).collect();
        if known.len() < FEWEST {
            return Err(
                "costs with reference applications whose system calls were counted (`virtbench costs` again, as root, for one \
                 processor)",
            );
        }
        Ok(Self { seen, asked, known })
    }

    /// Beside the application the references, the most alike first.
    fn neighbours(&self, costs: &Amounts) -> Vec<Neighbour<'a>> {
        let seconds = parts(costs, &self.asked);
        let neighbour = |(index, one): (usize, &Known<'a>)| {
            let others = self.known.iter().enumerate().filter(|(other, _)| *other != index);
            Neighbour {
                name: one.name,
                distance: distance(&parts(costs, &one.amounts), &seconds),
                missed_by: one.missed_by(&fit(others.map(|(_, one)| one))),
            }
        };
        let mut all: Vec<_> = self.known.iter().enumerate().map(neighbour).collect();
        all.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        all
    }

    pub(super) fn predict(&self, seed: u64) -> Crossed {
        let costs = fit(self.known.iter());
        let seconds = parts(&costs, &self.asked);
        let neighbours = self.neighbours(&costs);
        let is_unlike = neighbours.first().is_none_or(|nearest| nearest.distance > UNLIKE);
        let ratio = 1.0 / seconds.iter().sum::<f64>();
        let squares: f64 = neighbours.iter().map(|one| one.missed_by.powi(2)).sum();
        let [user_s, kernel_s] = self.seen.cpu_ns.map(|ns| ns as f64 / self.seen.elapsed_ns as f64);
        Crossed {
            ratio,
            draws: draws(SAMPLES, seed, |sample| {
                Some(ratio * (-missed(&neighbours, is_unlike, sample)).exp())
            }),
            seconds,
            reference_s: [user_s, kernel_s, (1.0 - user_s - kernel_s).max(0.0)],
            references: neighbours.len(),
            nearest: neighbours.iter().take(NAMED).map(|one| one.name.to_owned()).collect(),
            is_unlike,
            spread: (squares / neighbours.len() as f64).sqrt(),
        }
    }
}

fn parts(costs: &Amounts, amounts: &Amounts) -> Amounts {
    std::array::from_fn(|part| costs[part] * amounts[part])
}

/// What one of the references was missed by, of which those that are alike are drawn more often; either way, as those are few.
fn missed(neighbours: &[Neighbour<'_>], is_unlike: bool, sample: &mut Sample) -> f64 {
    let weight = |one: &Neighbour<'_>| match is_unlike {
        true => 1.0,
        false => (-(one.distance / WIDTH).powi(2) / 2.0).exp() + LEAST_WEIGHT,
    };
    let all: f64 = neighbours.iter().map(weight).sum();
    let mut left = sample.unit() * all;
    let drawn = neighbours.iter().find(|one| {
        left -= weight(one);
        left <= 0.0
    });
    let sign = if sample.unit() < 0.5 { -1.0 } else { 1.0 };
    let missed_by = drawn.map_or(0.0, |one| sign * one.missed_by) + BLUR * sample.normal();
    if is_unlike { UNLIKE_TIMES * missed_by } else { missed_by }
}

#[cfg(test)]
#[path = "crossings_tests.rs"]
mod tests;

//! How much longer an application's kernel code takes, from reference applications that ask the kernel for the like.
//!
//! Each reference was run on both machines, which gives its factor, and once more on the reference machine with what it
//! asked the kernel for counted. An application's factor is a weighted mean of theirs, in logarithms: a reference weighs
//! exp(-d^2 / 2h^2), where d is how far its counts for a millisecond of kernel time are from the application's (a kernel
//! regression: Nadaraya, "On Estimating Regression", Theory of Probability and its Applications 9(1), 1964). How wide h
//! is, is decided by leaving out each reference and predicting it from the others, and what that misses them by is the
//! interval. Nothing else is fitted.

use virtbench_record::{Costs, Footprint, Reference, ReferenceRun};

use super::scaling::Factor;

/// With fewer reference applications there is nothing to choose from.
const FEWEST: usize = 8;
/// Widths that are tried.
const WIDTHS: [f64; 6] = [0.7, 1.0, 1.4, 2.0, 2.8, 4.0];
/// Weight of a reference that is not at all alike, so that an application without any like it gets the mean.
const LEAST_WEIGHT: f64 = 1e-3;
/// What is compared, and how many of it in a millisecond of kernel time make no difference yet.
const KINDS: [(&str, f64); 7] = [
    ("call", 20.0),
    ("unlink", 1.0),
    ("page", 3.0),
    ("switch", 3.0),
    ("fault", 3.0),
    ("open", 5.0),
    ("disk", 3.0),
];
/// The same of pages that were copied.
const FEW_PAGES_COPIED: f64 = 5.0;
const PAGE_BYTES: f64 = 4096.0;
/// How many of those most alike are named.
const NAMED: usize = 3;

/// What an application asks for in a millisecond of kernel time, in logarithms.
type Demands = [f64; KINDS.len() + 1];

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Likened {
    /// The factor of kernel code with copying, on processors that are not crowded.
    pub factor: Factor,
    /// How many references there were.
    pub references: usize,
    /// Those that weigh most.
    pub nearest: Vec<String>,
}

/// Slowdown of code by other busy processors, 1 where only one is busy: that on the reference and on the subject.
pub(super) type Crowding<'a> = &'a dyn Fn(usize, f64) -> f64;

/// `None` where nobody counted, or where too few references have kernel code to speak of.
pub(super) fn likened(costs: &Costs, counted: &Footprint, crowding: Crowding<'_>) -> Option<Likened> {
    let wanted = demands(counted)?;
    let known: Vec<(&str, Demands, f64)> = costs
        .references
        .iter()
        .filter_map(|one| {
            Some((one.name.as_str(), demands(one.counted.as_ref()?)?, factor_ln(one, crowding)?))
        })
        .collect();
    if known.len() < FEWEST {
        return None;
    }
    let missed = |width: f64| {
        let error = |left_out: usize| {
            let others = known.iter().enumerate().filter(|(index, _)| *index != left_out);
            let others: Vec<_> = others.map(|(_, (_, demands, ln))| (demands, *ln)).collect();
            mean(&others, &known[left_out].1, width) - known[left_out].2
        };
        ((0..known.len()).map(|index| error(index).powi(2)).sum::<f64>() / known.len() as f64).sqrt()
    };
    let tried = WIDTHS.map(|width| (width, missed(width)));
    let (width, deviation) = tried.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    let all: Vec<_> = known.iter().map(|(_, demands, ln)| (demands, *ln)).collect();
    let mut by_weight: Vec<_> =
        known.iter().map(|(name, demands, _)| (weight(demands, &wanted, width), *name)).collect();
    by_weight.sort_by(|a, b| b.0.total_cmp(&a.0));
    Some(Likened {
        factor: Factor { ln: mean(&all, &wanted, width), deviation },
        references: known.len(),
        nearest: by_weight.iter().take(NAMED).map(|(_, name)| (*name).to_owned()).collect(),
    })
}

fn weight(a: &Demands, b: &Demands, width: f64) -> f64 {
    let distance: f64 = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum();
    (-distance / (2.0 * width * width)).exp() + LEAST_WEIGHT
}

fn mean(known: &[(&Demands, f64)], wanted: &Demands, width: f64) -> f64 {
    let weighted = known.iter().map(|(demands, ln)| (weight(demands, wanted, width), ln));
    let (sum, of) = weighted.fold((0.0, 0.0), |(sum, of), (weight, ln)| (sum + weight, of + weight * ln));
    of / sum
}

fn demands(counted: &Footprint) -> Option<Demands> {
    let ms = counted.cpu_ns[1] as f64 / 1e6;
    if counted.counts.is_empty() || ms <= 0.0 {
        return None;
    }
    let count = |name| *counted.counts.get(name).unwrap_or(&0) as f64;
    let mut all = [(counted.copied_bytes as f64 / PAGE_BYTES / ms + FEW_PAGES_COPIED).ln(); KINDS.len() + 1];
    for (demand, (name, few)) in all.iter_mut().zip(KINDS) {
        *demand = (count(name) / ms + few).ln();
    }
    Some(all)
}

/// Kernel code of an operation on the subject over that on the reference.
fn factor_ln(one: &Reference, crowding: Crowding<'_>) -> Option<f64> {
    let alone_s = |run: &ReferenceRun, side: usize| {
        let each_s = run.cpu_s(1)?;
        let Footprint { elapsed_ns, cpu_ns, .. } = &run.footprint;
        let busy = (cpu_ns[0] + cpu_ns[1]) as f64 / *elapsed_ns as f64;
        Some(each_s / crowding(side, busy))
    };
    Some((alone_s(&one.subject, 1)? / alone_s(&one.reference, 0)?).ln())
}

#[cfg(test)]
#[path = "likeness_tests.rs"]
mod tests;

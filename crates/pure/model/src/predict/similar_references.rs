//! How much longer an application's code takes, from reference applications whose kernel time goes to the like.
//!
//! Each reference was run on both machines, which gives its factors, and natively the kernel's functions were sampled. An
//! application's factor is a weighted mean of theirs, in logarithms: a reference weighs exp(-d^2 / 2h^2), where d is the
//! distance of their shares of kernel time by kind of work (Hellinger's: that of the shares' square roots; a kernel regression:
//! Nadaraya, "On Estimating Regression", Theory of Probability and its Applications 9(1), 1964). How wide h is, is decided by
//! leaving out each reference and predicting it from the others, and what that misses them by is the interval. Nothing else
//! is fitted.
//!
//! How much longer user code takes depends on what it is mixed with: who starts processes has code that is cold, who computes
//! has code that is translated once. So its distance is that of the shares of all processor time, of which user code is one
//! kind and the kernel's kinds are the rest: a program that computes is not compared with one that starts processes because
//! the little that either asks of the kernel is the same.

use virtbench_record::{Costs, Footprint, Reference, ReferenceRun};

use super::factor::Factor;
use super::kernel_work::{KERNEL_WORKS, shares};

/// With fewer reference applications there is nothing to choose from.
const FEWEST: usize = 8;
/// Widths that are tried; the square root of 2 is the distance of two that have nothing in common.
const WIDTHS: [f64; 6] = [0.1, 0.14, 0.2, 0.28, 0.4, 0.57];
/// Weight of a reference that is not at all alike, so that an application without any like it gets the mean.
const LEAST_WEIGHT: f64 = 1e-3;
/// How many of those most alike are named.
const NAMED: usize = 3;

/// Square roots of shares of processor time: user code, which has no share where kernel code is compared, and kernel code by
/// kind of work.
type Work = [f64; KERNEL_WORKS + 1];

/// The code whose factor is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    User,
    Kernel,
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Likened {
    /// The factor of kernel code with copying, on processors that are not crowded.
    pub kernel: Factor,
    /// The factor of user code on such; `None` where too few references have any to speak of.
    pub user: Option<Factor>,
    /// How many references there were.
    pub references: usize,
    /// Those that weigh most.
    pub nearest: Vec<String>,
}

/// Slowdown of code by other busy processors, 1 where only one is busy: that on the reference and on the subject.
pub(super) type Crowding<'a> = &'a dyn Fn(usize, f64) -> f64;

/// A reference with the factor of a part of its code.
struct Known<'a> {
    name: &'a str,
    work: Work,
    ln: f64,
}

/// `None` where nobody sampled, or where too few references have kernel code to speak of.
pub(super) fn likened(costs: &Costs, seen: &Footprint, crowding: Crowding<'_>) -> Option<Likened> {
    let wanted = work(seen, Mode::Kernel)?;
    let known = known(costs, Mode::Kernel, crowding);
    let kernel = factor(&known, &wanted)?;
    let mut nearest: Vec<_> = known.iter().map(|one| (distance(&one.work, &wanted), one.name)).collect();
    nearest.sort_by(|a, b| a.0.total_cmp(&b.0));
    Some(Likened {
        kernel,
        user: factor(&self::known(costs, Mode::User, crowding), &work(seen, Mode::User)?),
        references: known.len(),
        nearest: nearest.iter().take(NAMED).map(|(_, name)| (*name).to_owned()).collect(),
    })
}

/// Those that have code to speak of in a mode.
fn known<'a>(costs: &'a Costs, mode: Mode, crowding: Crowding<'_>) -> Vec<Known<'a>> {
    let known = |one: &'a Reference| {
        let ln = factor_ln(one, mode, crowding)?;
        Some(Known { name: &one.name, work: work(&one.reference.footprint, mode)?, ln })
    };
    costs.references.iter().filter_map(known).collect()
}

fn factor(known: &[Known<'_>], wanted: &Work) -> Option<Factor> {
    if known.len() < FEWEST {
        return None;
    }
    let missed = |width: f64| {
        let error = |left_out: usize| {
            let others = known.iter().enumerate().filter(|(index, _)| *index != left_out);
            mean(others.map(|(_, one)| one), &known[left_out].work, width) - known[left_out].ln
        };
        ((0..known.len()).map(|index| error(index).powi(2)).sum::<f64>() / known.len() as f64).sqrt()
    };
    let tried = WIDTHS.map(|width| (width, missed(width)));
    let (width, deviation) = tried.into_iter().min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Factor { ln: mean(known.iter(), wanted, width), deviation })
}

fn distance(a: &Work, b: &Work) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn mean<'a, 'b: 'a>(known: impl Iterator<Item = &'a Known<'b>>, wanted: &Work, width: f64) -> f64 {
    let weight = |work: &Work| (-(distance(work, wanted) / width).powi(2) / 2.0).exp() + LEAST_WEIGHT;
    let weighted = known.map(|one| (weight(&one.work), one.ln));
    let (sum, of) = weighted.fold((0.0, 0.0), |(sum, of), (weight, ln)| (sum + weight, of + weight * ln));
    of / sum
}

/// `None` where nobody sampled the kernel.
fn work(seen: &Footprint, mode: Mode) -> Option<Work> {
    let [user_ns, kernel_ns] = seen.cpu_ns.map(|ns| ns as f64);
    let user = match mode {
        Mode::User if user_ns + kernel_ns > 0.0 => user_ns / (user_ns + kernel_ns),
        Mode::User | Mode::Kernel => 0.0,
    };
    let mut work = [user.sqrt(); KERNEL_WORKS + 1];
    for (root, share) in work[1..].iter_mut().zip(shares(seen)?) {
        *root = ((1.0 - user) * share).sqrt();
    }
    Some(work)
}

/// Code of an operation on the subject over that on the reference.
fn factor_ln(one: &Reference, mode: Mode, crowding: Crowding<'_>) -> Option<f64> {
    let alone_s = |run: &ReferenceRun, side: usize| {
        let each_s = run.cpu_s(usize::from(mode == Mode::Kernel))?;
        let Footprint { elapsed_ns, cpu_ns, .. } = &run.footprint;
        let busy = (cpu_ns[0] + cpu_ns[1]) as f64 / *elapsed_ns as f64;
        Some(each_s / crowding(side, busy))
    };
    Some((alone_s(&one.subject, 1)? / alone_s(&one.reference, 0)?).ln())
}

#[cfg(test)]
#[path = "similar_references_tests.rs"]
mod tests;

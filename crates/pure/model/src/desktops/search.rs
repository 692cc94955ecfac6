//! How many desktops to try next: decided without measuring, from what the run folder holds.

use std::collections::BTreeSet;

use virtbench_record::{DesktopNumbers, DesktopsPlan, DesktopsRecord};

use super::analysis::{analyse_desktops, is_content};
use crate::knee::Bracket;

/// The next number of desktops and which repetition it is; nothing once everything is there. Of a search: doubled until users are
/// no longer content, then halved in between until two neighbours are known.
#[must_use]
pub fn next_desktops(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<(u32, u32)> {
    let missing = |number: u32| missing(plan, records, number).next().map(|repetition| (number, repetition));
    let most = match &plan.desktops {
        DesktopNumbers::Given(numbers) => return numbers.iter().find_map(|number| missing(*number)),
        DesktopNumbers::Auto { most } => *most,
    };
    let unfinished = records.iter().map(|record| record.desktops).find_map(missing);
    unfinished.or_else(|| missing(bracket(plan, records).next(most)?))
}

/// How many measurements are left at most. Nobody knows of a search that has not gone too far yet.
#[must_use]
pub fn desktops_left(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<u64> {
    let (numbers, left) = match &plan.desktops {
        DesktopNumbers::Given(numbers) => (numbers.iter().copied().collect(), 0),
        DesktopNumbers::Auto { .. } => {
            let tried: BTreeSet<u32> = records.iter().map(|record| record.desktops).collect();
            (tried, u64::from(bracket(plan, records).left()?))
        }
    };
    let unfinished: usize = numbers.iter().map(|number| missing(plan, records, *number).count()).sum();
    Some(left * u64::from(plan.repetitions) + unfinished as u64)
}

/// Repetitions of a number that are not there.
fn missing<'a>(
    plan: &DesktopsPlan,
    records: &'a [DesktopsRecord],
    number: u32,
) -> impl Iterator<Item = u32> + use<'a> {
    (0..plan.repetitions).filter(move |repetition| {
        !records.iter().any(|record| record.desktops == number && record.repetition == *repetition)
    })
}

/// Users are content or are not; what did not stand is too many as well.
fn bracket(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Bracket {
    let analysis = analyse_desktops(plan, records);
    let tried = || analysis.numbers.iter();
    let fits = tried().take_while(|at| is_content(plan, at)).map(|at| at.desktops).last().unwrap_or(0);
    let broken = tried().filter(|at| !is_content(plan, at)).map(|at| at.desktops);
    let failed = analysis.failures.iter().map(|(desktops, _)| *desktops);
    Bracket { fits, too_many: broken.chain(failed).min() }
}

//! How many desktops to try next: decided without measuring, from what the run folder holds.

use std::collections::BTreeSet;

use virtbench_record::{DesktopNumbers, DesktopsPlan, DesktopsRecord};

use super::analysis::{analyse_desktops, is_content};

/// The next number of desktops and which repetition it is; nothing once everything is there. Of a search: doubled until users are
/// no longer content, then halved in between until two neighbours are known.
#[must_use]
pub fn next_desktops(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<(u32, u32)> {
    let done = |number: u32| records.iter().filter(|record| record.desktops == number).count();
    let missing = |number: u32| {
        let repetition = (0..plan.repetitions).find(|repetition| {
            !records.iter().any(|record| record.desktops == number && record.repetition == *repetition)
        });
        repetition.map(|repetition| (number, repetition))
    };
    let most = match &plan.desktops {
        DesktopNumbers::Given(numbers) => return numbers.iter().find_map(|number| missing(*number)),
        DesktopNumbers::Auto { most } => *most,
    };
    if let Some(unfinished) = records.iter().map(|record| record.desktops).find_map(missing) {
        return Some(unfinished);
    }
    let next = match bracket(plan, records) {
        (content, None) if content >= most => return None,
        (content, None) => (content * 2).clamp(1, most),
        (content, Some(broken)) if broken <= content + 1 => return None,
        (content, Some(broken)) => content.midpoint(broken),
    };
    (done(next) == 0).then(|| missing(next)).flatten()
}

/// How many more measurements a search takes at most, once a number of desktops was too large. Nothing before that, nor where
/// the numbers are given.
#[must_use]
pub fn search_left(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<u64> {
    let DesktopNumbers::Auto { .. } = plan.desktops else { return None };
    let (content, broken) = bracket(plan, records);
    let between = broken?.saturating_sub(content).max(1);
    let numbers: BTreeSet<u32> = records.iter().map(|record| record.desktops).collect();
    let begun = numbers.len() as u64 * u64::from(plan.repetitions);
    let halvings = u32::BITS - (between - 1).leading_zeros();
    Some(u64::from(halvings * plan.repetitions) + begun.saturating_sub(records.len() as u64))
}

/// The most desktops whose users are content, and the fewest that are too many: what did not stand is that as well.
fn bracket(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> (u32, Option<u32>) {
    let analysis = analyse_desktops(plan, records);
    let tried = || analysis.numbers.iter();
    let content = tried().take_while(|at| is_content(plan, at)).map(|at| at.desktops).last().unwrap_or(0);
    let broken = tried().filter(|at| !is_content(plan, at)).map(|at| at.desktops);
    let failed = analysis.failures.iter().map(|(desktops, _)| *desktops);
    (content, broken.chain(failed).min())
}

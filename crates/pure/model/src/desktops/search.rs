//! How many desktops to try next: decided without measuring, from what the run folder holds.

use virtbench_record::{DesktopNumbers, DesktopsPlan, DesktopsRecord};

use super::analysis::{analyse_desktops, is_content};
use crate::knee::{Bracket, Course, Numbers};

/// The next number of desktops and which repetition it is; nothing once everything is there. Of a search: doubled until users are
/// no longer content, then halved in between until two neighbours are known.
#[must_use]
pub fn next_desktops(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<(u32, u32)> {
    course(plan, records, &|course| course.next())
}

/// How many measurements are left at most. Nobody knows of a search that has not gone too far yet.
#[must_use]
pub fn desktops_left(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<u64> {
    course(plan, records, &|course| course.left())
}

fn course<T>(plan: &DesktopsPlan, records: &[DesktopsRecord], ask: &dyn Fn(&Course<'_>) -> T) -> T {
    let is_there = |number: u32, repetition: u32| {
        records.iter().any(|record| record.key.desktops == number && record.key.repetition == repetition)
    };
    let bracket = || bracket(plan, records);
    let numbers = match &plan.desktops {
        DesktopNumbers::Given(numbers) => Numbers::Given(numbers),
        DesktopNumbers::Auto { most } => {
            let tried = records.iter().map(|record| record.key.desktops).collect();
            Numbers::Search { most: *most, tried, bracket: &bracket }
        }
    };
    ask(&Course { numbers, repetitions: plan.repetitions, is_there: &is_there })
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

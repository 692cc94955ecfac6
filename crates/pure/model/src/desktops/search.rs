//! How many desktops to try next: decided without measuring, from what the run folder holds.

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
    let analysis = analyse_desktops(plan, records);
    let tried = || analysis.numbers.iter();
    let content = tried().take_while(|at| is_content(plan, at)).map(|at| at.desktops).last().unwrap_or(0);
    let broken = tried().filter(|at| !is_content(plan, at)).map(|at| at.desktops);
    // What did not stand is too many as well.
    let failed = analysis.failures.iter().map(|(desktops, _)| *desktops);
    let next = match broken.chain(failed).min() {
        None if content >= most => return None,
        None => (content * 2).clamp(1, most),
        Some(broken) if broken <= content + 1 => return None,
        Some(broken) => content.midpoint(broken),
    };
    (done(next) == 0).then(|| missing(next)).flatten()
}

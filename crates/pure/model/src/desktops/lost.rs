//! Desktops that could not be used: never reached, lost on the way, or dead under a user who tried on.

use std::collections::BTreeMap;

use virtbench_record::{DesktopDone, DesktopGone, DesktopsMeasured};

/// So many operations at the end of a user's day that all failed are no mishap: the desktop was lost before them.
const FAILED_AT_THE_END: usize = 2;

/// Each desktop of one repetition that was of no use at its end, or of none at all, and why.
pub(super) fn lost(desktops: u32, measured: &DesktopsMeasured) -> Vec<DesktopGone> {
    let mut days: BTreeMap<u32, Vec<&DesktopDone>> = BTreeMap::new();
    for done in &measured.operations {
        days.entry(done.user).or_default().push(done);
    }
    let succeeded = |done: &DesktopDone| done.times.is_some();
    let others_work = measured.operations.iter().any(succeeded);
    let why = |user: u32| {
        if let Some(gone) = measured.gone.iter().find(|gone| gone.user == user) {
            return Some(gone.why.clone());
        }
        let Some(day) = days.get(&user) else {
            return others_work.then(|| "its user did nothing, while others worked".to_owned());
        };
        let failed = day.iter().rev().take_while(|done| !succeeded(done)).count();
        let last = day.last().and_then(|done| done.failed.as_deref()).unwrap_or("operations failed");
        if failed == day.len() {
            Some(format!("no operation succeeded: {last}"))
        } else if failed >= FAILED_AT_THE_END {
            Some(format!("nothing succeeded any more, the last {failed} operations failed: {last}"))
        } else {
            None
        }
    };
    (0..desktops).filter_map(|user| Some(DesktopGone { user, why: why(user)? })).collect()
}

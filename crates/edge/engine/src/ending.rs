//! How a worker comes to its end.

use virtbench_units::format_duration_ns;

use crate::recorder::error_name;

/// Operations that may fail in a row, with none succeeding, before a worker gives the target up.
const MAX_FAILURES_IN_A_ROW: u32 = 1_000;

/// How a worker's operations have fared.
#[derive(Debug, Default)]
pub(crate) struct Score {
    pub(crate) completed: u64,
    pub(crate) failures_in_a_row: u32,
    pub(crate) last_errno: i32,
}

impl Score {
    /// Why a worker gives up whose operations all fail; nothing while it does not.
    #[inline]
    pub(crate) fn gives_up(&self) -> Option<String> {
        (self.failures_in_a_row >= MAX_FAILURES_IN_A_ROW).then(|| {
            format!(
                "gave up after {} failed operations in a row, the last with: {}",
                self.failures_in_a_row,
                error_name(self.last_errno)
            )
        })
    }
}

/// When a worker stopped issuing operations, and why.
#[derive(Debug)]
pub(crate) struct End {
    pub(crate) stopped_ns: u64,
    /// Operations in flight have taken too long.
    pub(crate) stalled: bool,
    pub(crate) gave_up: Option<String>,
}

impl End {
    /// Nothing was wrong.
    pub(crate) const fn at(stopped_ns: u64) -> Self {
        Self { stopped_ns, stalled: false, gave_up: None }
    }
}

/// What a reader of the results is told about a target that does not answer.
pub(crate) fn stall_note(operations: u64, timeout_ns: u64, early: bool) -> String {
    let consequence = if early { ", so the load ended early" } else { ", in flight when measuring ended" };
    format!(
        "the target stalled: {operations} operation(s) took longer than --timeout {}{consequence}",
        format_duration_ns(timeout_ns)
    )
}

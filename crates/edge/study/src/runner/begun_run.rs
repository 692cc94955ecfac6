//! For tests: what a run says of itself before anything was measured.

use virtbench_record::{Plan, Provenance};

/// A run with this plan on an invented host, without guests or notes.
pub(crate) fn described(plan: Plan) -> Provenance {
    Provenance { guest: None, notes: Vec::new(), ..virtbench_samples::grid::described(plan) }
}

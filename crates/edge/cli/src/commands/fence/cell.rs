//! Estimates in cells of tables.

use virtbench_model::Estimate;

/// A mean with its interval, in a cell.
pub fn cell(estimate: &Estimate, unit: &str) -> String {
    match estimate.span() {
        Some(span) => format!("{:.1} {unit} ({:.1} to {:.1})", estimate.mean, span.low, span.high),
        None => format!("{:.1} {unit}", estimate.mean),
    }
}

//! The numbers of a study of desktops, as programs read them.

use virtbench_record::{Conclusion, DesktopsSummary};

use super::analysis::DesktopsAnalysis;

/// The numbers of an analysis that comes to this conclusion.
#[must_use]
pub fn summarise_desktops(conclusion: Conclusion, analysis: &DesktopsAnalysis) -> DesktopsSummary {
    DesktopsSummary {
        conclusion,
        most: analysis.most,
        most_by_last_change: analysis.most_by_last_change,
        broke_first: analysis.broke_first.clone(),
        numbers: analysis.numbers.clone(),
    }
}

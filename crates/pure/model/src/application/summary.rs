//! An application's comparison as programs read it.

use virtbench_record::{ApplicationRatios, ApplicationSideNumbers, ApplicationSummary, Conclusion};

use super::compared::ApplicationAnalysis;

/// The numbers of a comparison that comes to this conclusion.
#[must_use]
pub fn summarise_application(conclusion: Conclusion, analysis: &ApplicationAnalysis) -> ApplicationSummary {
    let (sides, ratios) = application_numbers(analysis);
    ApplicationSummary { conclusion, sides, ratios }
}

/// The sides, and all but the first against it.
pub(crate) fn application_numbers(
    analysis: &ApplicationAnalysis,
) -> (Vec<ApplicationSideNumbers>, Vec<ApplicationRatios>) {
    let sides = analysis.sides.iter().map(|side| ApplicationSideNumbers {
        configuration: side.name.clone(),
        known: side.known.iter().map(|(quantity, known)| (*quantity, (*known).into())).collect(),
        mismatch_percent: side.mismatch.map(|mismatch| mismatch.off_percent()),
    });
    let ratios = analysis.ratios.iter().map(|against| ApplicationRatios {
        configuration: analysis.sides[against.side].name.clone(),
        reference: analysis.sides[0].name.clone(),
        ratios: against.ratios.iter().map(|(quantity, ratio)| (*quantity, (*ratio).into())).collect(),
        slower_percent: against.growth.and_then(|growth| growth.slower_percent()),
    });
    (sides.collect(), ratios.collect())
}

//! The numbers of a study of tiles, as programs read them.

use virtbench_record::{Conclusion, TilesStudySummary};

use super::analysis::TilesStudyAnalysis;
use crate::tiles::summarise_tiles;

/// The numbers of an analysis that comes to this conclusion.
#[must_use]
pub fn summarise_tiles_study(conclusion: Conclusion, analysis: &TilesStudyAnalysis) -> TilesStudySummary {
    let scored = summarise_tiles(Conclusion::default(), &analysis.scored);
    TilesStudySummary {
        conclusion,
        covers: analysis.covers.clone(),
        tiles: scored.configurations.into_iter().next(),
        breaches: analysis.breaches.clone(),
        broke_first: analysis.broke_first.clone(),
        first_in_time: analysis.first_in_time.clone(),
        host: analysis.host.clone(),
        energy_unavailable: analysis.energy_unavailable.clone(),
        void: analysis.void.clone(),
    }
}

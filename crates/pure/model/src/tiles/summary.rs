//! Tiles as programs read them.

use virtbench_record::{
    Conclusion, TileChangeNumbers, TileMemberNumbers, TileSideNumbers, TileStepNumbers, TilesSummary,
};

use super::analysis::TilesAnalysis;
use super::configuration::{TileConfiguration, TileMember, TileStep};

/// The numbers of tiles that come to this conclusion.
#[must_use]
pub fn summarise_tiles(conclusion: Conclusion, analysis: &TilesAnalysis) -> TilesSummary {
    let name = |index: usize| analysis.configurations[index].name.clone();
    let changes = analysis.changes.iter().map(|change| TileChangeNumbers {
        configuration: name(change.configuration),
        reference: name(0),
        tiles: change.tiles,
        sum: change.sum.into(),
        members: change.members.iter().map(|(member, ratio)| (member.clone(), (*ratio).into())).collect(),
    });
    TilesSummary {
        conclusion,
        configurations: analysis.configurations.iter().map(configuration).collect(),
        changes: changes.collect(),
    }
}

fn configuration(one: &TileConfiguration) -> TileSideNumbers {
    TileSideNumbers {
        configuration: one.name.clone(),
        fits: one.most().map(|step| step.tiles),
        too_many: one.too_many().map(|step| step.tiles),
        holds_at_least_percent: one.holds_at_least().map(|share| 100.0 * share),
        steps: one.steps.iter().map(step).collect(),
    }
}

fn step(one: &TileStep) -> TileStepNumbers {
    TileStepNumbers {
        tiles: one.tiles,
        runs: one.runs,
        held: one.held,
        score: one.score().map(Into::into),
        sum: one.sum.map(Into::into),
        infrastructure: one.infrastructure.map(Into::into),
        total: one.total.map(Into::into),
        jain: one.jain,
        members: one.members.iter().map(member).collect(),
    }
}

fn member(one: &TileMember) -> TileMemberNumbers {
    TileMemberNumbers {
        member: one.name.clone(),
        normalised: one.normalised.map(Into::into),
        of_one_tile: one.of_one_tile.map(Into::into),
        broken: one.broken,
        infrastructure: one.infrastructure,
    }
}

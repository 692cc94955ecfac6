//! What a reader takes away from tiles.

use virtbench_model::TilesAnalysis;
use virtbench_model::tiles::{TileChange, TileConfiguration, TileStep};
use virtbench_model::tiles_study::NO_MEMBER;

use super::Takeaway;
use crate::format::{count, ratio, ratio_span, rounded, significant};

/// How many missing figures are named.
const NAMED: usize = 4;

/// How many tiles fit on each configuration, and what changed.
pub(crate) fn of_tiles(analysis: &TilesAnalysis) -> Takeaway {
    let mut sentences: Vec<String> = analysis.configurations.iter().map(fits).collect();
    let others = 1..analysis.configurations.len();
    sentences.extend(others.filter_map(|index| Some(changed(analysis, widest(analysis, index)?))));
    sentences.extend(analysis.configurations.iter().filter_map(confidence));
    let mut sentences = sentences.into_iter();
    let headline = sentences.next().unwrap_or_else(|| "There is no tile.".into());
    Takeaway { headline, details: sentences.collect(), cautions: cautions(analysis) }
}

fn fits(one: &TileConfiguration) -> String {
    let broke = one.too_many().map(broke);
    match (one.most(), broke) {
        (None, Some(broke)) => format!("No tile fits on {}: {broke}.", one.name),
        (None, None) => format!("Nothing was measured on {}.", one.name),
        (Some(most), broke) if !most.levels_known => format!(
            "Whether {} fits on {} is not known{}: the table does not say whether service levels were held{}.",
            count(most.tiles as usize, "tile"),
            one.name,
            score(most),
            broke.map_or_else(String::new, |broke| format!("; {broke}"))
        ),
        (Some(most), broke) => format!(
            "{} fits {}{}; {}.",
            one.name,
            count(most.tiles as usize, "tile"),
            score(most),
            broke.unwrap_or_else(|| "more were not tried".into())
        ),
    }
}

fn confidence(one: &TileConfiguration) -> Option<String> {
    let (most, share) = (one.most()?, one.holds_at_least()?);
    if !most.levels_known {
        return None;
    }
    let runs = if most.runs == 1 { "The only run".into() } else { format!("All {} runs", most.runs) };
    Some(format!(
        "{runs} with {} on {} kept every service level: with 95 % confidence at least {} % of such runs do.",
        count(most.tiles as usize, "tile"),
        one.name,
        rounded(100.0 * share, 0)
    ))
}

/// The comparison with the most tiles that fit on both; where none do, with the most that both have.
fn widest(analysis: &TilesAnalysis, index: usize) -> Option<&TileChange> {
    let fits = |change: &TileChange| {
        [0, index]
            .iter()
            .all(|one| analysis.configurations[*one].most().is_some_and(|most| most.tiles >= change.tiles))
    };
    let own = analysis.changes.iter().filter(|change| change.configuration == index);
    own.max_by_key(|change| (fits(change), change.tiles))
}

fn score(step: &TileStep) -> String {
    let Some(score) = step.score() else { return ", without a score".into() };
    let span = score.span().map_or_else(String::new, |span| {
        format!(" ({} to {})", significant(span.low), significant(span.high))
    });
    format!(", score {}{span}", significant(score.mean))
}

fn broke(step: &TileStep) -> String {
    let with = count(step.tiles as usize, "tile");
    let broken = format!("in {} of {}", step.runs - step.held, count(step.runs as usize, "run"));
    match step.weakest() {
        Some(member) if member.name == NO_MEMBER => format!("{with} could not start, {broken}"),
        Some(member) => format!("with {with} {} breaks its service levels, {broken}", member.name),
        None => format!("with {with} a service level is broken"),
    }
}

fn changed(analysis: &TilesAnalysis, change: &TileChange) -> String {
    let name = |index: usize| &analysis.configurations[index].name;
    let span = |ratio: &virtbench_model::Ratio| {
        ratio.interval.map_or_else(String::new, |span| format!(" ({})", ratio_span(span)))
    };
    let moved = change.members.first().map_or_else(String::new, |(member, moved)| {
        format!("; {member} moved most: {} times{}", ratio(moved.value), span(moved))
    });
    format!(
        "With {} {} scores {} times what {} does{}{moved}.",
        count(change.tiles as usize, "tile"),
        name(change.configuration),
        ratio(change.sum.value),
        name(0),
        span(&change.sum)
    )
}

fn cautions(analysis: &TilesAnalysis) -> Vec<String> {
    let mut cautions = Vec::new();
    let steps = || analysis.configurations.iter().flat_map(|one| &one.steps);
    if steps().all(|step| step.runs < 3) {
        cautions.push("No number of tiles was run three times, so nothing is known of the spread.".into());
    }
    for one in &analysis.configurations {
        let gap = one.steps.windows(2).find(|pair| pair[1].tiles > pair[0].tiles + 1);
        if let Some([before, after]) = gap.map(|pair| [pair[0].tiles, pair[1].tiles]) {
            cautions.push(format!("{}: nothing is known between {before} and {after} tiles.", one.name));
        }
        for step in one.steps.iter().filter(|step| !step.missing.is_empty()) {
            let more = step.missing.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named = step.missing.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            cautions.push(format!(
                "{} with {}: a run without all its members has no score. Missing: {named}{more}.",
                one.name,
                count(step.tiles as usize, "tile")
            ));
        }
    }
    cautions
}

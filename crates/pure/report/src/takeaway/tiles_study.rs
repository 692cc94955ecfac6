//! What a reader takes away from a study of tiles.

use virtbench_model::tiles_study::{NO_MEMBER, TilesStudyAnalysis};
use virtbench_record::{INFRASTRUCTURE, Provenance, TileBreach, TilesPlan};
use virtbench_units::format_duration_ns;

use super::cautions::emulation;
use super::{Takeaway, of_tiles};
use crate::format::{count, rounded, significant};

/// Breaches beyond the first that are named.
const MORE: usize = 3;

/// How many fit with which score, who broke first and on what, and what the score does not cover.
pub(crate) fn of_tiles_study(
    provenance: &Provenance,
    plan: &TilesPlan,
    analysis: &TilesStudyAnalysis,
) -> Takeaway {
    let mut takeaway = of_tiles(&analysis.scored);
    if analysis.configuration().is_none() {
        takeaway.headline = format!("Nothing that counts was measured of {} yet.", plan.tile);
    }
    if let Some(unjudged) = unjudged(analysis) {
        let open = "; more were not tried.";
        takeaway.headline = takeaway.headline.replace(open, &format!("; {unjudged}."));
    }
    let mut details = Vec::new();
    if let Some(first) = &analysis.broke_first {
        details.push(broke(first));
        if first.member != NO_MEMBER {
            details.extend(first_in_time(analysis, first));
            details.push(behind(plan, analysis, first.tiles));
            details.extend(others(analysis, first));
        }
    }
    details.extend(energy(analysis));
    details.push(covers(plan, analysis));
    takeaway.details.splice(0..0, details);
    takeaway.cautions.extend(cautions(provenance, plan, analysis));
    takeaway
}

/// The number of tiles beyond those that fit of which no run counts, and why.
fn unjudged(analysis: &TilesStudyAnalysis) -> Option<String> {
    let void = analysis.void.iter().max_by_key(|void| void.tiles)?;
    let judged = analysis.scored.configurations.iter().flat_map(|one| &one.steps);
    if judged.map(|step| step.tiles).max().is_some_and(|judged| judged >= void.tiles) {
        return None;
    }
    let why = void.why.first().map_or("", String::as_str);
    Some(format!("{} could not be judged: {why}", count(void.tiles as usize, "tile")))
}

fn broke(first: &TileBreach) -> String {
    let with = count(first.tiles as usize, "tile");
    if first.member == NO_MEMBER {
        return format!("Why {with} could not start: {}.", first.level);
    }
    format!("With {with}, {} was farthest from its service level: {}.", whose(first), first.level)
}

/// A member of a tile, or the infrastructure load.
fn whose(breach: &TileBreach) -> String {
    match breach.tile {
        INFRASTRUCTURE => format!("the {} load", breach.member),
        tile => format!("{} of tile {tile}", breach.member),
    }
}

fn first_in_time(analysis: &TilesStudyAnalysis, farthest: &TileBreach) -> Option<String> {
    let first = analysis.first_in_time.as_ref()?;
    let since = format_duration_ns(first.since_ns?);
    Some(if (first.tile, &first.member) == (farthest.tile, &farthest.member) {
        format!("It was also the first in time, {since} after measuring began.")
    } else {
        format!("First in time was {}, {since} after measuring began: {}.", whose(first), first.level)
    })
}

/// What is in the score, and of the infrastructure load how well it kept its pace.
fn covers(plan: &TilesPlan, analysis: &TilesStudyAnalysis) -> String {
    let Some(load) = &plan.infrastructure else {
        return "The score covers applications only: no infrastructure load ran beside them.".into();
    };
    let most = analysis.configuration().and_then(|one| one.most().or_else(|| one.too_many()));
    let parts = most.and_then(|step| Some((step.sum?.mean, step.infrastructure?.mean)));
    let parts = parts.map_or_else(String::new, |(sum, infrastructure)| {
        format!(": {} and {} there", significant(sum), significant(infrastructure))
    });
    format!("The score covers {}{parts}. Operations ran on {}.", analysis.covers, load.platform)
}

fn behind(plan: &TilesPlan, analysis: &TilesStudyAnalysis, tiles: u32) -> String {
    if plan.is_elsewhere() {
        return "What limits it is not known: its machine is elsewhere.".into();
    }
    let Some(host) = analysis.host.iter().find(|host| host.tiles == tiles) else {
        return "Nothing was measured of the host there.".into();
    };
    match host.exhausted.as_slice() {
        [] => format!(
            "Neither processors ({} % busy), memory, disk nor network of the host were exhausted: a member's own processors limit, or \
             bursts do.",
            rounded(host.busy_percent, 0)
        ),
        exhausted => format!("Exhausted were {}.", exhausted.join("; ")),
    }
}

fn others(analysis: &TilesStudyAnalysis, first: &TileBreach) -> Option<String> {
    let mut names: Vec<String> = Vec::new();
    for breach in analysis.breaches.iter().filter(|breach| breach.tiles == first.tiles) {
        if breach.member != first.member && !names.contains(&breach.member) {
            names.push(breach.member.clone());
        }
    }
    let more = names.len().saturating_sub(MORE);
    names.truncate(MORE);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    (!names.is_empty()).then(|| format!("Other members that broke theirs: {}{rest}.", names.join(", ")))
}

fn energy(analysis: &TilesStudyAnalysis) -> Option<String> {
    let most = analysis.configuration()?.most()?;
    let host = analysis.host.iter().find(|host| host.tiles == most.tiles)?;
    match (host.watts, host.score_per_kilowatt, &analysis.energy_unavailable) {
        (Some(watts), Some(score), _) => Some(format!(
            "With {} the host took {} W: a score of {} for each kilowatt.",
            count(most.tiles as usize, "tile"),
            significant(watts),
            significant(score)
        )),
        (_, _, Some(why)) => Some(format!("Score for each kilowatt unavailable: {why}.")),
        _ => None,
    }
}

fn cautions(provenance: &Provenance, plan: &TilesPlan, analysis: &TilesStudyAnalysis) -> Vec<String> {
    let mut cautions: Vec<String> = emulation(provenance).into_iter().collect();
    if plan.existing {
        cautions.push(
            "Members were there already, on machines of their own: the use of this host is that of the generators, and what their \
             machines lacked is not known."
                .into(),
        );
    } else if let Some(host) = plan.host.as_ref().filter(|host| host.elsewhere) {
        let what = if plan.vm { "were VMs of" } else { "ran natively on" };
        cautions.push(format!(
            "Members {what} {}, by the {} there: the use of this host is that of the generators, and what that machine lacked is not \
             known.",
            host.address, host.network
        ));
    } else if !plan.vm {
        cautions
            .push("Members ran on the host itself, in namespaces: no hypervisor is in these figures.".into());
    }
    if plan.members.iter().any(|member| member.reference.is_none() && member.load.kind.name() != "idle") {
        cautions.push(
            "Members without a reference value are held against what they did with the fewest tiles: the score is no measure of \
             this host against others."
                .into(),
        );
    }
    if !plan.is_elsewhere() {
        cautions.push("The generators share the host with the tiles; what they cost is in its use.".into());
    }
    cautions.extend(analysis.few.iter().cloned());
    cautions.extend(analysis.others.clone());
    for void in &analysis.void {
        cautions.push(format!(
            "Run {} with {} does not count: {}.",
            void.repetition + 1,
            count(void.tiles as usize, "tile"),
            void.why.join("; ")
        ));
    }
    cautions
}

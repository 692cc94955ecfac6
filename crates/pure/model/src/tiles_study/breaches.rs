//! Which service levels a run has broken.

use virtbench_record::{
    TileBreach, TileDone, TileLevels, TileMemberMeasured, TilesPlan, TilesRecord, TilesStatus,
};
use virtbench_units::format_duration_ns;

/// Who is named where a run failed and no member is to blame.
pub(crate) const HOST: &str = "host";

/// Every service level that a run has broken; none of a run that does not count. A member that ended has broken all it had.
#[must_use]
pub fn breaches(plan: &TilesPlan, record: &TilesRecord) -> Vec<TileBreach> {
    let breach = |tile: u32, member: &str, level: String, beyond: Option<f64>| TileBreach {
        tiles: record.tiles,
        repetition: record.repetition,
        tile,
        member: member.to_owned(),
        level,
        beyond,
    };
    match &record.status {
        TilesStatus::Failed { tile, member, why } => {
            vec![breach(tile.unwrap_or(1), member.as_deref().unwrap_or(HOST), why.clone(), None)]
        }
        TilesStatus::Measured(measured) if !measured.void.is_empty() => Vec::new(),
        TilesStatus::Measured(measured) => {
            let of = |one: &TileMemberMeasured| -> Vec<TileBreach> {
                let levels = plan.member(&one.member).map(|member| member.levels).unwrap_or_default();
                let broken = one.done.as_ref().map_or_else(Vec::new, |done| broken(&levels, done));
                broken
                    .into_iter()
                    .map(|(level, beyond)| breach(one.tile, &one.member, level, beyond))
                    .collect()
            };
            measured.members.iter().flat_map(of).collect()
        }
    }
}

/// The levels that are broken, each with how far it is.
fn broken(levels: &TileLevels, done: &TileDone) -> Vec<(String, Option<f64>)> {
    let mut found = Vec::new();
    if let Some(limit_ns) = levels.response_ns {
        let (percentile, limit) = (levels.percentile, format_duration_ns(limit_ns));
        match done.response_ns(percentile) {
            Some(ns) if ns > limit_ns => {
                // Whole milliseconds are exact enough for a reader.
                let took = format_duration_ns(ns.next_multiple_of(1_000_000));
                let words = format!("{percentile} % of operations took up to {took}, allowed {limit}");
                found.push((words, Some(ns as f64 / limit_ns as f64)));
            }
            Some(_) => {}
            None => {
                found.push((format!("no operation was done, {percentile} % are allowed {limit}"), None));
            }
        }
    }
    if let Some(least) = levels.least_per_second
        && done.per_second < least
    {
        let beyond = (done.per_second > 0.0).then(|| least / done.per_second);
        found.push((
            format!("{:.3} operations a second, at least {least} asked for", done.per_second),
            beyond,
        ));
    }
    if let Some(errors) = done.errors_percent()
        && errors > levels.errors_percent
    {
        let beyond = (levels.errors_percent > 0.0).then(|| errors / levels.errors_percent);
        found.push((
            format!("{errors:.2} % of operations failed, allowed {} %", levels.errors_percent),
            beyond,
        ));
    }
    found
}

//! Which service levels a run has broken.

use virtbench_record::{
    Status, TileBreach, TileDone, TileLevels, TileMemberMeasured, TilesPlan, TilesRecord,
};
use virtbench_units::format_duration_ns;

use super::infrastructure::infrastructure_breach;
use super::since::{failing_since, few_since, slow_since};
use crate::interval::CONFIDENCE;

/// Who is named where so many tiles could not start and no member is to blame, as for want of memory.
pub const NO_MEMBER: &str = "the host itself";

/// Every service level that a run has broken; none of a run that does not count. A member that ended has broken all it had.
#[must_use]
pub fn breaches(plan: &TilesPlan, record: &TilesRecord) -> Vec<TileBreach> {
    let breach = |tile: u32, member: &str, broken: Broken| TileBreach {
        tiles: record.key.tiles,
        repetition: record.key.repetition,
        tile,
        member: member.to_owned(),
        level: broken.level,
        beyond: broken.beyond,
        since_ns: broken.since_ns,
    };
    match &record.status {
        Status::Failed { why, detail } => {
            let broken = Broken { level: why.clone(), beyond: None, since_ns: None };
            vec![breach(detail.tile.unwrap_or(1), detail.member.as_deref().unwrap_or(NO_MEMBER), broken)]
        }
        Status::Unavailable { why } | Status::Incomplete { why, .. } => {
            vec![breach(1, NO_MEMBER, Broken { level: why.clone(), beyond: None, since_ns: None })]
        }
        Status::Measured(measured) if !measured.void.is_empty() => Vec::new(),
        Status::Measured(measured) => {
            let of = |one: &TileMemberMeasured| -> Vec<TileBreach> {
                let levels = plan.member(&one.member).map(|member| member.levels).unwrap_or_default();
                let broken = one.done.as_ref().map_or_else(Vec::new, |done| broken(&levels, done));
                broken.into_iter().map(|broken| breach(one.tile, &one.member, broken)).collect()
            };
            measured.members.iter().flat_map(of).chain(infrastructure_breach(plan, record)).collect()
        }
    }
}

/// Operations of which all have to be within a limit for this percentage of all such operations to be, with 95 % confidence (order
/// statistics; W. J. Conover, Practical Nonparametric Statistics, section 3.3): 29 for 90 %, 59 for 95 %, 299 for 99 %.
#[must_use]
pub fn operations_needed(percentile: f64) -> u64 {
    let all_within = |operations: &u64| {
        i32::try_from(*operations).map_or(0.0, |operations| (percentile / 100.0).powi(operations))
    };
    (1..).find(|operations| all_within(operations) <= 1.0 - CONFIDENCE).unwrap_or(u64::MAX)
}

/// How many operations were done and how many the level of response times needs, where they are too few.
pub(super) fn too_few(levels: &TileLevels, done: &TileDone) -> Option<[u64; 2]> {
    levels.response_ns?;
    let (there, needed) = (done.timed()?, operations_needed(levels.percentile));
    (there < needed).then_some([there, needed])
}

/// A broken level: in words, how far, since when.
struct Broken {
    level: String,
    beyond: Option<f64>,
    since_ns: Option<u64>,
}

/// The levels that are broken. A member that did nothing, or does not keep up with a rate, has broken what was asked of it, also where no level
/// was named.
fn broken(levels: &TileLevels, done: &TileDone) -> Vec<Broken> {
    let mut found = Vec::new();
    if done.did_nothing() {
        let level = "it completed no operation".to_owned();
        return vec![Broken { level, beyond: None, since_ns: Some(0) }];
    }
    if done.fell_behind {
        let due = done.backlog_end.unwrap_or(0);
        let level =
            format!("it did not keep up with its rate: {due} operations were due and not begun at the end");
        found.push(Broken { level, beyond: None, since_ns: None });
    }
    if let Some(limit_ns) = levels.response_ns {
        let (percentile, limit) = (levels.percentile, format_duration_ns(limit_ns));
        let few = too_few(levels, done);
        // Of too few operations the slowest stands for those that nobody saw.
        let slowest = few.and_then(|_| Some(done.latency_ns?.max));
        match slowest.or_else(|| done.response_ns(percentile)) {
            Some(ns) if ns > limit_ns => {
                // Whole milliseconds are exact enough for a reader.
                let took = format_duration_ns(ns.next_multiple_of(1_000_000));
                let level = match few {
                    Some([there, needed]) => format!(
                        "the slowest of {there} operations, too few for {percentile} % ({needed} are needed), took {took}, allowed {limit}"
                    ),
                    None => format!("{percentile} % of operations took up to {took}, allowed {limit}"),
                };
                found.push(Broken {
                    level,
                    beyond: Some(ns as f64 / limit_ns as f64),
                    since_ns: slow_since(done, limit_ns),
                });
            }
            Some(_) => {}
            None => {
                let level = format!("no operation was done, {percentile} % are allowed {limit}");
                found.push(Broken { level, beyond: None, since_ns: Some(0) });
            }
        }
    }
    if let Some(least) = levels.least_per_second
        && done.per_second < least
    {
        found.push(Broken {
            level: format!("{:.3} operations a second, at least {least} asked for", done.per_second),
            beyond: (done.per_second > 0.0).then(|| least / done.per_second),
            since_ns: few_since(done, least),
        });
    }
    if let Some(errors) = done.errors_percent()
        && errors > levels.errors_percent
    {
        found.push(Broken {
            level: format!("{errors:.2} % of operations failed, allowed {} %", levels.errors_percent),
            beyond: (levels.errors_percent > 0.0).then(|| errors / levels.errors_percent),
            since_ns: failing_since(done, levels.errors_percent),
        });
    }
    found
}

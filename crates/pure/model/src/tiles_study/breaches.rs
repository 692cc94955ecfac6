//! Which service levels a run has broken and since when, the rows that its tiles are scored by, and how many tiles to try next.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_record::{
    INFRASTRUCTURE, OperationKind, OperationsMeasured, OperationsPlan, Status, TileAlone, TileBreach,
    TileDone, TileLevels, TileMemberMeasured, TileNumbers, TileRow, TileSecond, TilesKey, TilesPlan,
    TilesRecord,
};
use virtbench_units::format_duration_ns;

use crate::interval::CONFIDENCE;
use crate::saturation::{Bracket, Course, Numbers};

/// Who is named where so many tiles could not start and no member is to blame, as for want of memory.
pub const NO_MEMBER: &str = "the host itself";

/// Every service level that a run has broken; none of a run that does not count, or of members by themselves. A member that ended has
/// broken all it had.
#[must_use]
pub fn breaches(plan: &TilesPlan, record: &TilesRecord) -> Vec<TileBreach> {
    if !record.is_together() {
        return Vec::new();
    }
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

/// The first second whose percentile was above the limit.
pub(super) fn slow_since(done: &TileDone, limit_ns: u64) -> Option<u64> {
    let is_slow = |second: &&TileSecond| second.response_ns.is_some_and(|ns| ns > limit_ns);
    done.series.iter().find(is_slow).map(|second| second.start_ns)
}

/// The second from which on too few operations were done a second, on average since measuring began.
pub(super) fn few_since(done: &TileDone, least: f64) -> Option<u64> {
    let mut completed = 0;
    let seconds = (1u32..).zip(&done.series).map(|(number, second)| {
        completed += second.completed;
        (second.start_ns, (completed as f64) < least * f64::from(number))
    });
    beginning(seconds)
}

/// The second from which on too many operations had failed.
pub(super) fn failing_since(done: &TileDone, percent: f64) -> Option<u64> {
    let (mut completed, mut failed) = (0, 0);
    let seconds = done.series.iter().map(|second| {
        completed += second.completed;
        failed += second.failed;
        let share = 100.0 * failed as f64 / (completed + failed).max(1) as f64;
        (second.start_ns, share > percent)
    });
    beginning(seconds)
}

/// The first of the seconds at the end that are all beyond; nothing where the last one is not.
fn beginning(seconds: impl Iterator<Item = (u64, bool)>) -> Option<u64> {
    let mut since = None;
    for (start_ns, is_beyond) in seconds {
        since = if is_beyond { since.or(Some(start_ns)) } else { None };
    }
    since
}

/// Operations that may fail, or not be started, in percent of all, before a number of tiles does not fit.
const FAILED_PERCENT: f64 = 10.0;

/// Who breaks that.
const NAME: &str = "infrastructure";

/// Which of the operations ended, and of how many.
struct Share {
    kind: OperationKind,
    done: u64,
    wanted: u64,
}

fn shares(plan: &OperationsPlan, measured: &OperationsMeasured) -> Vec<Share> {
    let rounds = plan.pace().map_or(0, |(rounds, _)| rounds);
    let share = |(kind, share): (&OperationKind, &u32)| Share {
        kind: *kind,
        done: measured.operations.get(kind).map_or(0, |one| one.done),
        wanted: rounds * u64::from(*share),
    };
    plan.mix.iter().map(share).collect()
}

/// A row for each operation: how many were done a minute, and how many the pace asks for. One that is behind at the end takes longer
/// than the piece, and so does fewer a minute.
pub(super) fn infrastructure_rows(plan: &TilesPlan, record: &TilesRecord) -> Vec<TileRow> {
    let Some((load, measured)) = of(plan, record) else { return Vec::new() };
    let held = infrastructure_breach(plan, record).is_none();
    let a_minute = |number: u64, length_ns: u64| number as f64 * 60e9 / length_ns.max(1) as f64;
    let row = |share: Share| TileRow {
        configuration: plan.configuration().to_owned(),
        repetition: record.key.repetition,
        tiles: record.key.tiles,
        tile: INFRASTRUCTURE,
        member: share.kind.name().to_owned(),
        done: Some([
            a_minute(share.done, measured.elapsed_ns.max(load.piece_ns)),
            a_minute(share.wanted, load.piece_ns),
        ]),
        held: Some(held || share.done >= share.wanted),
    };
    shares(load, measured).into_iter().filter(|share| share.wanted > 0).map(row).collect()
}

/// Whether too many operations were not done.
pub(super) fn infrastructure_breach(plan: &TilesPlan, record: &TilesRecord) -> Option<TileBreach> {
    let (load, measured) = of(plan, record)?;
    let all = shares(load, measured);
    let wanted: u64 = all.iter().map(|share| share.wanted).sum();
    let missing: u64 = all.iter().map(|share| share.wanted.saturating_sub(share.done)).sum();
    let percent = 100.0 * missing as f64 / wanted.max(1) as f64;
    let why = measured.first_failures.first().map_or_else(String::new, |why| format!(" ({why})"));
    let limit = format_duration_ns(load.limit_ns);
    (percent > FAILED_PERCENT).then(|| TileBreach {
        tiles: record.key.tiles,
        repetition: record.key.repetition,
        tile: INFRASTRUCTURE,
        member: NAME.into(),
        level: format!(
            "{missing} of {wanted} management operations were not done within {limit}{why}, allowed are {FAILED_PERCENT} %"
        ),
        beyond: Some(percent / FAILED_PERCENT),
        since_ns: None,
    })
}

fn of<'a>(
    plan: &'a TilesPlan,
    record: &'a TilesRecord,
) -> Option<(&'a OperationsPlan, &'a OperationsMeasured)> {
    Some((plan.infrastructure.as_ref()?, record.measured()?.infrastructure.as_ref()?))
}

/// What the score covers.
pub(super) fn covers(plan: &TilesPlan) -> String {
    let Some(load) = &plan.infrastructure else { return "applications only".into() };
    let names = |kinds: &mut dyn Iterator<Item = &OperationKind>| {
        kinds.map(|kind| kind.name()).collect::<Vec<_>>().join(", ")
    };
    let without = match load.left_out.as_slice() {
        [] => String::new(),
        kinds => format!("; without {}", names(&mut kinds.iter())),
    };
    format!("applications 80 %, infrastructure 20 % ({}{without})", names(&mut load.mix.keys()))
}

/// A row for each member of each tile of every run that counts, and for each operation of its infrastructure load. A run that failed has one row, of the member that ended, which
/// has not kept its levels.
#[must_use]
pub fn tile_rows(plan: &TilesPlan, records: &[TilesRecord]) -> Vec<TileRow> {
    let references = references(plan, records);
    let mut rows = Vec::new();
    for record in together(records).filter(|record| record.void().is_none()) {
        let row = |tile: u32, member: &str, done: Option<[f64; 2]>, held: bool| TileRow {
            configuration: plan.configuration().to_owned(),
            repetition: record.key.repetition,
            tiles: record.key.tiles,
            tile,
            member: member.to_owned(),
            done,
            held: Some(held),
        };
        match &record.status {
            Status::Failed { detail, .. } => {
                let member = detail.member.as_deref().unwrap_or(NO_MEMBER);
                rows.push(row(detail.tile.unwrap_or(1), member, None, false));
            }
            Status::Unavailable { .. } | Status::Incomplete { .. } => {
                rows.push(row(1, NO_MEMBER, None, false));
            }
            Status::Measured(measured) => {
                let broken = breaches(plan, record);
                for one in &measured.members {
                    let held =
                        !broken.iter().any(|breach| breach.tile == one.tile && breach.member == one.member);
                    let reference = references.get(one.member.as_str()).copied();
                    // A member that did nothing has no ratio, and the score 0.
                    let done = one.done.as_ref();
                    let done = done.map(|done| [done.per_second, reference.unwrap_or(0.0)]);
                    rows.push(row(one.tile, &one.member, done, held));
                }
                rows.extend(infrastructure_rows(plan, record));
            }
        }
    }
    rows
}

/// What each member is held against: what the plan says, or the mean of what it did with the fewest tiles that were measured.
fn references<'a>(plan: &'a TilesPlan, records: &[TilesRecord]) -> BTreeMap<&'a str, f64> {
    let counts = || together(records).filter(|record| record.void().is_none() && record.measured().is_some());
    let fewest = counts().map(|record| record.key.tiles).min();
    let measured = |name: &str| {
        let members = counts()
            .filter(|record| Some(record.key.tiles) == fewest)
            .filter_map(TilesRecord::measured)
            .flat_map(|measured| &measured.members);
        let rates: Vec<f64> = members
            .filter(|one| one.member == name)
            .filter_map(|one| Some(one.done.as_ref()?.per_second))
            .collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        Some(mean).filter(|mean| *mean > 0.0)
    };
    plan.members
        .iter()
        .filter_map(|member| {
            Some((member.name.as_str(), member.reference.or_else(|| measured(&member.name))?))
        })
        .collect()
}

/// Runs of tiles whose members were all under load.
pub(super) fn together(records: &[TilesRecord]) -> impl Iterator<Item = &TilesRecord> {
    records.iter().filter(|record| record.is_together())
}

/// A run that does not count is tried once more.
const TRIES: usize = 2;

/// What to measure next; nothing once everything is there. Members by themselves come first, where tiles are to be predicted. Of a search
/// of tiles: doubled until a service level breaks, then halved in between until two neighbours are known. One broken level settles a
/// number: it is not repeated.
#[must_use]
pub fn next_tiles(plan: &TilesPlan, records: &[TilesRecord]) -> Option<TilesKey> {
    let alone = alone_left(plan, records).next();
    let together = || course(plan, records, &|course| course.next());
    alone
        .map(TilesKey::alone)
        .or_else(|| together().map(|(tiles, repetition)| TilesKey::together(tiles, repetition)))
}

/// How many runs are left at most, if all of them count. `None` for a search that has not gone too far yet.
#[must_use]
pub fn tiles_left(plan: &TilesPlan, records: &[TilesRecord]) -> Option<u64> {
    let alone = alone_left(plan, records).count() as u64;
    course(plan, records, &|course| course.left()).map(|together| alone + together)
}

/// Who is still to be measured by himself.
fn alone_left<'a>(
    plan: &'a TilesPlan,
    records: &'a [TilesRecord],
) -> impl Iterator<Item = TileAlone> + use<'a> {
    plan.measured_alone().into_iter().filter(|who| {
        let own = || records.iter().filter(|record| record.key.alone == Some(*who));
        own().all(|record| record.void().is_some()) && own().count() < TRIES
    })
}

fn course<T>(plan: &TilesPlan, records: &[TilesRecord], ask: &dyn Fn(&Course<'_>) -> T) -> T {
    let is_there = |number: u32, repetition: u32| is_settled(records, number, repetition);
    let bracket = || bracket(plan, records);
    let numbers = match &plan.tiles {
        TileNumbers::Given(numbers) => Numbers::Given(numbers),
        TileNumbers::Auto { most } => {
            Numbers::Search { most: *most, tried: open(plan, records), bracket: &bracket }
        }
    };
    ask(&Course { numbers, repetitions: plan.repetitions, is_there: &is_there })
}

fn is_broken(plan: &TilesPlan, records: &[TilesRecord], number: u32) -> bool {
    together(records).any(|record| record.key.tiles == number && !breaches(plan, record).is_empty())
}

/// Numbers that were tried and not broken.
fn open(plan: &TilesPlan, records: &[TilesRecord]) -> BTreeSet<u32> {
    let tried = together(records).map(|record| record.key.tiles);
    tried.filter(|number| !is_broken(plan, records, *number)).collect()
}

/// Of runs that do not count nothing is known, and nothing larger is tried.
fn bracket(plan: &TilesPlan, records: &[TilesRecord]) -> Bracket {
    let tried: BTreeSet<u32> = together(records).map(|record| record.key.tiles).collect();
    let fits = |number: &&u32| {
        let counts = together(records).any(|record| record.key.tiles == **number && record.void().is_none());
        counts && !is_broken(plan, records, **number)
    };
    Bracket {
        fits: tried.iter().take_while(fits).last().copied().unwrap_or(0),
        too_many: tried.iter().find(|number| !fits(number)).copied(),
    }
}

/// Whether there is a run that counts, or as many tries as there may be.
fn is_settled(records: &[TilesRecord], number: u32, repetition: u32) -> bool {
    let own = || {
        together(records).filter(|record| record.key.tiles == number && record.key.repetition == repetition)
    };
    own().any(|record| record.void().is_none()) || own().count() >= TRIES
}

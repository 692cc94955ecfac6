//! The result of the infrastructure load: management operations at a fixed pace beside the tiles.

use virtbench_record::{
    INFRASTRUCTURE, OperationKind, OperationsMeasured, OperationsPlan, TileBreach, TileRow, TilesPlan,
    TilesRecord,
};
use virtbench_units::format_duration_ns;

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

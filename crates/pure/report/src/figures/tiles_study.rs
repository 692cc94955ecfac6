//! The members of tiles against their service levels over time, and the host meanwhile.

use virtbench_chart::{Axis, Chart, Dash, Form, Look, Point, Rule, Series, look};
use virtbench_record::{
    TileDone, TileHostSecond, TileMemberMeasured, TileMemberPlan, TilesMeasured, TilesPlan, TilesRecord,
};

use super::style::INK;
use super::{Drawing, Figure, Values, Variant};
use crate::format::{SECOND_NS, count};

/// Seconds since measuring began, and what was found there.
type Curve = Vec<(f64, f64)>;

/// A member's curve as shares of what its service level asks for.
type Of<'a> = &'a dyn Fn(&TileMemberPlan, &TileDone) -> Option<Curve>;

/// Two drawings, with a variant for each number of tiles: response times, and operations done, as shares of what the service
/// level asks for. Nothing without a series.
pub(crate) fn tiles_members(plan: &TilesPlan, records: &[TilesRecord]) -> Option<Figure> {
    let runs = firsts(records);
    let quantities: [(&str, &str, Of<'_>); 2] = [
        ("tiles-response", "response time, of what is allowed", &responses),
        ("tiles-rate", "operations, of the least asked for", &rates),
    ];
    let drawings =
        quantities.into_iter().filter_map(|(id, quantity, of)| drawing(plan, &runs, id, quantity, of));
    let drawings: Vec<Drawing> = drawings.collect();
    (!drawings.is_empty()).then(|| Figure {
        title: "Each member against its service levels".into(),
        caption: "One is what the service level asks for. Response times are a percentile of each second (the 95th, of a database \
                  the 90th), and stay below one; operations are those of a second on average since measuring began, and stay \
                  above it. The level itself holds for the whole measuring time."
            .into(),
        drawings,
        values: Values::Own,
    })
}

/// The first run that counts of each number of tiles, ascending.
fn firsts(records: &[TilesRecord]) -> Vec<(u32, &TilesMeasured)> {
    let mut runs: Vec<(u32, &TilesMeasured)> = Vec::new();
    for record in records.iter().filter(|record| record.void().is_none()) {
        if let Some(measured) = record.measured()
            && runs.iter().all(|(tiles, _)| *tiles != record.key.tiles)
        {
            runs.push((record.key.tiles, measured));
        }
    }
    runs.sort_by_key(|(tiles, _)| *tiles);
    runs
}

fn responses(member: &TileMemberPlan, done: &TileDone) -> Option<Curve> {
    let limit_ns = member.levels.response_ns? as f64;
    let known = done.series.iter().filter_map(|second| {
        Some((second.start_ns as f64 / SECOND_NS, second.response_ns? as f64 / limit_ns))
    });
    Some(known.collect()).filter(|curve: &Curve| !curve.is_empty())
}

fn rates(member: &TileMemberPlan, done: &TileDone) -> Option<Curve> {
    let least = member.levels.least_per_second.filter(|least| *least > 0.0)?;
    let mut sum = 0.0;
    let known = (1u32..).zip(&done.series).map(|(number, second)| {
        sum += second.completed as f64;
        (second.start_ns as f64 / SECOND_NS, sum / f64::from(number) / least)
    });
    Some(known.collect()).filter(|curve: &Curve| !curve.is_empty())
}

fn line(name: String, look: Look, curve: Curve) -> Series {
    let points = curve.into_iter().map(|(at, value)| Point::new(at, value)).collect();
    Series { name, look, form: Form::Line, points }
}

fn drawing(
    plan: &TilesPlan,
    runs: &[(u32, &TilesMeasured)],
    id: &str,
    quantity: &str,
    of: Of<'_>,
) -> Option<Drawing> {
    let mut variants = Vec::new();
    for (tiles, run) in runs {
        let lines = run.members.iter().filter_map(|one| {
            let (index, curve) = found(plan, one, of)?;
            let name = format!("{} {}", one.member, one.tile);
            let dashes = [Dash::Solid, Dash::Dashed, Dash::Dotted, Dash::Mixed];
            Some(line(name, look(index).dashed(dashes[(one.tile as usize - 1) % 4]), curve))
        });
        let series: Vec<Series> = lines.collect();
        if series.is_empty() {
            continue;
        }
        let level =
            Rule { at: 1.0, label: "service level".into(), look: Look::of_colour(INK).dashed(Dash::Dotted) };
        let across = Axis::from_zero("seconds since measuring began");
        let chart = Chart { series, rules: vec![level], ..Chart::new(across, Axis::from_zero(quantity)) };
        variants.push(Variant::chart(format!("{quantity}, {}", count(*tiles as usize, "tile")), chart));
    }
    let label = format!(
        "{quantity}, over time, a line for each member of each tile; the table below holds the values."
    );
    of_tiles(id, label, variants)
}

/// The member's place in the plan, and its curve.
fn found(plan: &TilesPlan, one: &TileMemberMeasured, of: Of<'_>) -> Option<(usize, Curve)> {
    let index = plan.members.iter().position(|member| member.name == one.member)?;
    Some((index, of(&plan.members[index], one.done.as_ref()?)?))
}

/// The last variant, of the most tiles, is shown first.
fn of_tiles(id: &str, label: String, variants: Vec<Variant>) -> Option<Drawing> {
    let first = variants.len().checked_sub(1)?;
    Some(Drawing { id: id.into(), label, choice: "number of tiles", variants, first })
}

/// The host second by second, with a variant for each number of tiles. Nothing where nobody looked.
pub(crate) fn tiles_host(records: &[TilesRecord]) -> Option<Figure> {
    let mut variants = Vec::new();
    for (tiles, run) in firsts(records).into_iter().filter(|(_, run)| !run.seconds.is_empty()) {
        let all = f64::from(run.host.processors.max(1));
        let memory = |available: u64| Some(100.0 - 100.0 * available as f64 / run.memory_bytes? as f64);
        let lines: [(&str, Curve); 5] = [
            ("processors busy", host_curve(run, &|second| Some((second.cpu_percent / all).min(100.0)))),
            ("taken away by a hypervisor below", host_curve(run, &|second| Some(second.steal_percent / all))),
            ("memory used", host_curve(run, &|second| memory(second.available_bytes?))),
            ("disk of the data busy", host_curve(run, &|second| second.disk_percent)),
            ("network interface, of its speed", host_curve(run, &|second| second.network_percent)),
        ];
        let drawn = lines.into_iter().enumerate().filter(|(_, (_, curve))| !curve.is_empty());
        let chart = Chart {
            series: drawn.map(|(index, (name, curve))| line(name.into(), look(index), curve)).collect(),
            ..Chart::new(
                Axis::from_zero("seconds since measuring began"),
                Axis::from_zero("% of all").within(0.0, 100.0),
            )
        };
        variants.push(Variant::chart(count(tiles as usize, "tile"), chart));
    }
    let label =
        "Processors, memory, disk and network of the host over time; the table below holds the values.";
    Some(Figure {
        title: "The host while tiles are measured".into(),
        caption: "The generators run on this host too, and are in its use.".into(),
        drawings: vec![of_tiles("tiles-host", label.into(), variants)?],
        values: Values::Own,
    })
}

fn host_curve(run: &TilesMeasured, value: &dyn Fn(&TileHostSecond) -> Option<f64>) -> Curve {
    let point = |second: &TileHostSecond| Some((second.start_ns as f64 / SECOND_NS, value(second)?));
    run.seconds.iter().filter_map(point).collect()
}

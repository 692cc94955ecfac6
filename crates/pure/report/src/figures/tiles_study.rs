//! The members of tiles against their service levels over time, and the host meanwhile.

use plotly::common::{DashType, Line, Mode};
use plotly::layout::RangeMode;
use plotly::{Scatter, Traces};
use virtbench_record::{TileDone, TileMemberMeasured, TileMemberPlan, TilesMeasured, TilesPlan, TilesRecord};

use super::style::{HOVER, INK, axis, layout, palette};
use super::{Choice, Drawing, Figure, Variant};
use crate::format::{SECOND_NS, count};

/// A member's points: seconds since measuring began, and shares of what its service level asks for.
type Points = (Vec<f64>, Vec<f64>);

/// Two drawings, with a variant for each number of tiles: response times, and operations done, as shares of what the service
/// level asks for. Nothing without a series.
pub(crate) fn tiles_members(plan: &TilesPlan, records: &[TilesRecord]) -> Option<Figure> {
    let runs = firsts(records);
    let drawings: Vec<Drawing> = [
        drawing(
            plan,
            &runs,
            "tiles-response",
            "Tiles, response times",
            "response time, of what is allowed",
            &responses,
        ),
        drawing(plan, &runs, "tiles-rate", "Tiles, operations", "operations, of the least asked for", &rates),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!drawings.is_empty()).then(|| Figure {
        title: "Each member against its service levels".into(),
        caption: "One is what the service level asks for. Response times are a percentile of each second (the 95th, of a database \
                  the 90th), and stay below one; operations are those of a second on average since measuring began, and stay \
                  above it. The level itself holds for the whole measuring time."
            .into(),
        key: Vec::new(),
        drawings,
    })
}

/// The first run that counts of each number of tiles, ascending.
fn firsts(records: &[TilesRecord]) -> Vec<(u32, &TilesMeasured)> {
    let mut runs: Vec<(u32, &TilesMeasured)> = Vec::new();
    for record in records.iter().filter(|record| record.void().is_none()) {
        if let Some(measured) = record.measured()
            && runs.iter().all(|(tiles, _)| *tiles != record.tiles)
        {
            runs.push((record.tiles, measured));
        }
    }
    runs.sort_by_key(|(tiles, _)| *tiles);
    runs
}

fn responses(member: &TileMemberPlan, done: &TileDone) -> Option<Points> {
    let limit_ns = member.levels.response_ns? as f64;
    let known = done.series.iter().filter_map(|second| {
        Some((second.start_ns as f64 / SECOND_NS, second.response_ns? as f64 / limit_ns))
    });
    Some(known.unzip()).filter(|(places, _): &Points| !places.is_empty())
}

fn rates(member: &TileMemberPlan, done: &TileDone) -> Option<Points> {
    let least = member.levels.least_per_second.filter(|least| *least > 0.0)?;
    let mut sum = 0.0;
    let known = (1u32..).zip(&done.series).map(|(number, second)| {
        sum += second.completed as f64;
        (second.start_ns as f64 / SECOND_NS, sum / f64::from(number) / least)
    });
    Some(known.unzip()).filter(|(places, _): &Points| !places.is_empty())
}

fn drawing(
    plan: &TilesPlan,
    runs: &[(u32, &TilesMeasured)],
    id: &str,
    select: &'static str,
    quantity: &str,
    points: &dyn Fn(&TileMemberPlan, &TileDone) -> Option<Points>,
) -> Option<Drawing> {
    let mut variants = Vec::new();
    for (tiles, run) in runs {
        let mut traces = Traces::new();
        let mut longest: f64 = 0.0;
        for one in &run.members {
            let Some((index, found)) = found(plan, one, points) else { continue };
            longest = found.0.iter().copied().fold(longest, f64::max);
            let name = if *tiles > 1 { format!("{} {}", one.member, one.tile) } else { one.member.clone() };
            let dash = [DashType::Solid, DashType::Dash, DashType::Dot, DashType::DashDot];
            let line = Line::new().color(palette(index).0).dash(dash[(one.tile as usize - 1) % 4].clone());
            let trace = Scatter::new(found.0, found.1).name(name).mode(Mode::Lines).line(line);
            traces.push(trace.hover_info(HOVER));
        }
        if longest == 0.0 {
            continue;
        }
        let level = Line::new().color(INK).dash(DashType::Dot).width(1.0);
        let trace = Scatter::new(vec![0.0, longest], vec![1.0, 1.0]).name("service level");
        traces.push(trace.mode(Mode::Lines).line(level));
        let layout = layout()
            .x_axis(axis("seconds since measuring began").range_mode(RangeMode::ToZero))
            .y_axis(axis(quantity).range_mode(RangeMode::ToZero))
            .height(360);
        variants.push(Variant::new(count(*tiles as usize, "tile"), &traces, &layout));
    }
    let label = format!("{quantity}, over time, a line for each member of each tile.");
    selected(id, select, label, variants)
}

/// The member's place in the plan, and its points.
fn found(
    plan: &TilesPlan,
    one: &TileMemberMeasured,
    points: &dyn Fn(&TileMemberPlan, &TileDone) -> Option<Points>,
) -> Option<(usize, Points)> {
    let index = plan.members.iter().position(|member| member.name == one.member)?;
    Some((index, points(&plan.members[index], one.done.as_ref()?)?))
}

/// The last variant, of the most tiles, is shown first.
fn selected(id: &str, select: &'static str, label: String, variants: Vec<Variant>) -> Option<Drawing> {
    let first = variants.len().checked_sub(1)?;
    let choice = if first > 0 { Choice::Select(select) } else { Choice::Only };
    Some(Drawing { id: id.into(), label, choice, variants, first })
}

/// The host second by second, with a variant for each number of tiles. Nothing where nobody looked.
pub(crate) fn tiles_host(records: &[TilesRecord]) -> Option<Figure> {
    let mut variants = Vec::new();
    for (tiles, run) in firsts(records).into_iter().filter(|(_, run)| !run.seconds.is_empty()) {
        let all = f64::from(run.host.processors.max(1));
        let memory = |available: u64| Some(100.0 - 100.0 * available as f64 / run.memory_bytes? as f64);
        let lines: [(&str, Vec<(f64, f64)>); 5] = [
            ("processors busy", of(run, &|second| Some((second.cpu_percent / all).min(100.0)))),
            ("taken away by a hypervisor below", of(run, &|second| Some(second.steal_percent / all))),
            ("memory used", of(run, &|second| memory(second.available_bytes?))),
            ("disk of the data busy", of(run, &|second| second.disk_percent)),
            ("network interface, of its speed", of(run, &|second| second.network_percent)),
        ];
        let mut traces = Traces::new();
        for (index, (name, points)) in lines.into_iter().enumerate().filter(|(_, line)| !line.1.is_empty()) {
            let (places, values): Points = points.into_iter().unzip();
            let line = Line::new().color(palette(index).0);
            let trace = Scatter::new(places, values).name(name).mode(Mode::Lines).line(line);
            traces.push(trace.hover_info(HOVER));
        }
        let layout = layout()
            .x_axis(axis("seconds since measuring began").range_mode(RangeMode::ToZero))
            .y_axis(axis("% of all").range(vec![0.0, 105.0]))
            .height(320);
        variants.push(Variant::new(count(tiles as usize, "tile"), &traces, &layout));
    }
    let label =
        "Processors, memory, disk and network of the host over time; the table below holds the means.";
    Some(Figure {
        title: "The host while tiles are measured".into(),
        caption: "The generators run on this host too, and are in its use.".into(),
        key: Vec::new(),
        drawings: vec![selected("tiles-host", "Tiles", label.into(), variants)?],
    })
}

fn of(
    run: &TilesMeasured,
    value: &dyn Fn(&virtbench_record::TileHostSecond) -> Option<f64>,
) -> Vec<(f64, f64)> {
    let point = |second| Some((second_of(second), value(second)?));
    run.seconds.iter().filter_map(point).collect()
}

fn second_of(second: &virtbench_record::TileHostSecond) -> f64 {
    second.start_ns as f64 / SECOND_NS
}

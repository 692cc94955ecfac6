//! Tiles against their score and against what is left to each member.

use plotly::common::{HoverInfo, Line, Marker, MarkerSymbol, Mode};
use plotly::layout::RangeMode;
use plotly::{Scatter, Traces};
use virtbench_model::TilesAnalysis;
use virtbench_model::tiles::TileStep;

use super::style::{HOVER, INK, axis, layout, palette};
use super::{Drawing, Figure, Variant};
use crate::format::{ratio, significant};

/// Two drawings: the score, a line for each configuration; what is left to each member of the first configuration. Nothing
/// without a score.
pub(crate) fn tiles(analysis: &TilesAnalysis) -> Option<Figure> {
    let mut steps = analysis.configurations.iter().flat_map(|one| &one.steps);
    steps.any(|step| step.total.is_some()).then_some(())?;
    Some(Figure {
        title: "Tiles against score, and what is left to each member".into(),
        caption: "The sum of the tiles' scores, weighed with the infrastructure load where there was one. A cross is a number of tiles at which a member broke its service levels: it has \
                  no score. What is left is of what a member does with one tile."
            .into(),
        key: Vec::new(),
        drawings: vec![scores(analysis), members(analysis)],
    })
}

fn scores(analysis: &TilesAnalysis) -> Drawing {
    let mut traces = Traces::new();
    for (index, one) in analysis.configurations.iter().enumerate() {
        let known: Vec<(&TileStep, f64)> =
            one.steps.iter().filter_map(|step| Some((step, step.total?.mean))).collect();
        let hover = known.iter().map(|(step, sum)| {
            let (tiles, held, runs) = (step.tiles, step.held, step.runs);
            format!(
                "{}<br>{tiles} tiles: <b>{}</b><br>{held} of {runs} runs held",
                one.name,
                significant(*sum)
            )
        });
        let marker = Marker::new().color(palette(index).0).size(9);
        traces.push(line(&one.name, index, &known, marker, hover.collect()));
    }
    let void: Vec<(u32, f64)> = analysis
        .configurations
        .iter()
        .flat_map(|one| &one.steps)
        .filter_map(|step| Some((step.tiles, step.total.filter(|_| !step.fits())?.mean)))
        .collect();
    if !void.is_empty() {
        let (tiles, sums): (Vec<u32>, Vec<f64>) = void.into_iter().unzip();
        let cross = Marker::new().color(INK).size(12).symbol(MarkerSymbol::X);
        let trace = Scatter::new(tiles, sums).name("void").mode(Mode::Markers).marker(cross);
        traces.push(trace.hover_info(HoverInfo::Skip));
    }
    drawing("tiles-score", "score", &traces)
}

fn members(analysis: &TilesAnalysis) -> Drawing {
    let mut traces = Traces::new();
    let steps = analysis.configurations.first().map_or(&[][..], |one| one.steps.as_slice());
    let names: Vec<&str> = steps.iter().flat_map(|step| &step.members).map(|one| one.name.as_str()).collect();
    let mut drawn: Vec<&str> = Vec::new();
    for name in names {
        if drawn.contains(&name) {
            continue;
        }
        drawn.push(name);
        let left = |step: &TileStep| step.members.iter().find(|one| one.name == name)?.of_one_tile;
        let known: Vec<(&TileStep, f64)> =
            steps.iter().filter_map(|step| Some((step, left(step)?.value))).collect();
        if known.is_empty() {
            continue;
        }
        let hover = known
            .iter()
            .map(|(step, left)| format!("{name}<br>{} tiles: <b>{}</b>", step.tiles, ratio(*left)));
        let index = drawn.len() - 1;
        let marker = Marker::new().color(palette(index).0).size(7);
        traces.push(line(name, index, &known, marker, hover.collect()));
    }
    drawing("tiles-members", "of what it does with one tile", &traces)
}

fn line(
    name: &str,
    index: usize,
    known: &[(&TileStep, f64)],
    marker: Marker,
    hover: Vec<String>,
) -> Box<Scatter<u32, f64>> {
    Scatter::new(
        known.iter().map(|(step, _)| step.tiles).collect::<Vec<_>>(),
        known.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
    )
    .name(name)
    .mode(Mode::LinesMarkers)
    .line(Line::new().color(palette(index).0))
    .marker(marker)
    .hover_text_array(hover)
    .hover_info(HOVER)
}

fn drawing(id: &str, quantity: &str, traces: &Traces) -> Drawing {
    let layout = layout()
        .x_axis(axis("tiles").range_mode(RangeMode::ToZero).dtick(1.0))
        .y_axis(axis(quantity).range_mode(RangeMode::ToZero))
        .height(340);
    let label = format!("{quantity} against tiles; the table below holds the values.");
    Drawing::only(id, label, Variant::new(quantity, traces, &layout))
}

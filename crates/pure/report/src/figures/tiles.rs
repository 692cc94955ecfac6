//! Tiles against their score and against what is left to each member.

use virtbench_chart::{Axis, Chart, Form, Look, Point, Scale, Series, Shape, look};
use virtbench_model::TilesAnalysis;
use virtbench_model::tiles::TileStep;

use super::style::INK;
use super::{Drawing, Figure, Values, Variant};
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
        drawings: vec![scores(analysis), members(analysis)],
        values: Values::Own,
    })
}

fn scores(analysis: &TilesAnalysis) -> Drawing {
    let mut series: Vec<Series> = Vec::new();
    for (index, one) in analysis.configurations.iter().enumerate() {
        let points = one.steps.iter().filter_map(|step| {
            let (sum, tiles) = (step.total?.mean, step.tiles);
            let (held, runs) = (step.held, step.runs);
            let hover =
                format!("{}\n{tiles} tiles: {}\n{held} of {runs} runs held", one.name, significant(sum));
            Some(Point::new(f64::from(tiles), sum).hover(hover))
        });
        let points = points.collect();
        series.push(Series { name: one.name.clone(), look: look(index), form: Form::Marked, points });
    }
    let steps = analysis.configurations.iter().flat_map(|one| &one.steps);
    let void = steps.filter_map(|step| {
        let sum = step.total.filter(|_| !step.fits())?.mean;
        Some(Point::new(f64::from(step.tiles), sum).hover(format!("{} tiles: void", step.tiles)))
    });
    let look = Look::of_colour(INK).shaped(Shape::Cross);
    series.push(Series { name: "void".into(), look, form: Form::Marks, points: void.collect() });
    drawing("tiles-score", "score", series)
}

fn members(analysis: &TilesAnalysis) -> Drawing {
    let steps = analysis.configurations.first().map_or(&[][..], |one| one.steps.as_slice());
    let mut names: Vec<&str> = Vec::new();
    for one in steps.iter().flat_map(|step| &step.members) {
        if !names.contains(&one.name.as_str()) {
            names.push(&one.name);
        }
    }
    let lines = names.iter().enumerate().map(|(index, name)| {
        let left = |step: &TileStep| step.members.iter().find(|one| one.name == *name)?.of_one_tile;
        let points = steps.iter().filter_map(|step| {
            let left = left(step)?.value;
            let hover = format!("{name}\n{} tiles: {}", step.tiles, ratio(left));
            Some(Point::new(f64::from(step.tiles), left).hover(hover))
        });
        Series { name: (*name).into(), look: look(index), form: Form::Marked, points: points.collect() }
    });
    drawing("tiles-members", "of what it does with one tile", lines.collect())
}

fn drawing(id: &str, quantity: &str, series: Vec<Series>) -> Drawing {
    let chart = Chart { series, ..Chart::new(Axis::new("tiles", Scale::Whole), Axis::from_zero(quantity)) };
    let label = format!("{quantity} against tiles; the table below holds the values.");
    Drawing::only(id, label, Variant::chart(quantity, chart))
}

//! What figures have in common, and those of times and cycles by what they are spent on.

use virtbench_chart::{Axis, Chart, Dash, Form, Look, Point, Rule, Series, Shape, look};
use virtbench_model::predict::{Breakdown, Part as Spent};
use virtbench_model::{ApplicationAnalysis, Span};
use virtbench_record::Quantity;

use super::{Drawing, Figure, Values, Variant};
use crate::format::significant;
use crate::run::RunSide;

/// Colours of the style sheet by what they stand for.
pub(crate) const BETTER: u8 = 2;

pub(crate) const WORSE: u8 = 1;

pub(crate) const INK: u8 = 6;

pub(crate) const GREY: u8 = 7;

/// How a side is drawn everywhere.
pub(super) fn look_of(side: &RunSide) -> Look {
    match side.index {
        1 => look(1).shaped(Shape::Square),
        index => look(index),
    }
}

/// Rows with these names.
pub(crate) fn rows(names: &[String]) -> Axis {
    Axis::categories("", names.to_vec())
}

/// A dashed line in grey.
pub(crate) fn dashed_rule(at: f64, label: impl Into<String>) -> Rule {
    Rule { at, label: label.into(), look: Look::of_colour(GREY).dashed(Dash::Dashed) }
}

/// Both ends of an interval.
pub(crate) fn ends(span: Span) -> [f64; 2] {
    [span.low, span.high]
}

/// One part of every bar: its name, its colour, and how much of each bar it is.
pub(super) struct Part {
    pub(super) name: String,
    pub(super) colour: u8,
    pub(super) of_each: Vec<f64>,
}

/// The bars; parts that none of them has are left out. `unit` is behind every number, `axis` below all.
pub(super) fn stacked(axis: &str, unit: &str, names: &[String], parts: &[Part]) -> Chart {
    let drawn = parts.iter().filter(|part| part.of_each.iter().any(|value| *value > 0.0));
    let series = drawn.map(|part| {
        let points = names.iter().zip(&part.of_each).enumerate().map(|(row, (name, value))| {
            let hover = format!("{name}\n{}: {} {unit}", part.name, significant(*value));
            Point::new(*value, row as f64).hover(hover)
        });
        Series {
            name: part.name.clone(),
            look: Look::of_colour(part.colour),
            form: Form::Stack,
            points: points.collect(),
        }
    });
    Chart { series: series.collect(), ..Chart::new(Axis::from_zero(axis), rows(names)) }
}

/// A bar for each side: the reference's cycles, what more instructions add to them, and what slower ones add. Nothing where
/// the three figures are not known.
pub(crate) fn growth(analysis: &ApplicationAnalysis) -> Option<Figure> {
    let base = analysis.sides.first()?.known.get(&Quantity::CyclesPerTransaction)?.mean;
    let mut names = vec![analysis.sides[0].name.clone()];
    let mut sides = vec![[base, 0.0, 0.0]];
    for against in &analysis.ratios {
        let growth = against.growth?;
        names.push(analysis.sides[against.side].name.clone());
        let further = base * (growth.instructions - 1.0);
        let slower = base * (growth.cycles - growth.instructions);
        sides.push([base + further.min(0.0) + slower.min(0.0), further.max(0.0), slower.max(0.0)]);
    }
    let parts = [("as on the reference", 0), ("more instructions", 2), ("slower instructions", 1)];
    let parts = parts.into_iter().enumerate().map(|(index, (name, colour))| Part {
        name: name.into(),
        colour,
        of_each: sides.iter().map(|side| side[index]).collect(),
    });
    let chart = stacked("cycles a transaction", "cycles", &names, &parts.collect::<Vec<_>>());
    let label = "Cycles a transaction on each side, split into those of the reference, of further instructions and of slower ones; \
                 the table below holds the values.";
    Some(Figure {
        title: "Cycles of a transaction".into(),
        caption: "Cycles are cycles an instruction (CPI) times instructions (path length). What CPI adds is counted at \
                  the longer path ([Platform 2014], Table 5)."
            .into(),
        drawings: vec![Drawing::only("growth", label.into(), Variant::chart("", chart))],
        values: Values::Own,
    })
}

/// Parts in the order in which they are spent, each with its colour: the disk as what is
/// native to the question, virtualization as what the VM adds, waiting elsewhere in grey.
const PARTS: [(Spent, u8); 7] = [
    (Spent::Compute, 4),
    (Spent::User, 4),
    (Spent::System, 2),
    (Spent::Elsewhere, 7),
    (Spent::Virtualization, 1),
    (Spent::SystemIo, 5),
    (Spent::Disk, 0),
];

/// The figure: a bar for each side, and one for what was measured where the prediction was tried.
pub(crate) fn breakdown(names: [&str; 2], sides: &[Breakdown; 2], measured_ms: Option<f64>) -> Figure {
    let mut bars = names.map(str::to_owned).to_vec();
    bars.extend(measured_ms.map(|_| format!("{}, in fact", names[1])));
    let parts = PARTS.into_iter().map(|(part, colour)| {
        let of =
            |side: &Breakdown| side.0.iter().find(|(known, _)| *known == part).map_or(0.0, |(_, ms)| *ms);
        let of_each = sides.iter().map(of).chain(measured_ms.map(|_| 0.0)).collect();
        Part { name: part.name().into(), colour, of_each }
    });
    let whole = measured_ms.map(|ms| Part {
        name: "measured, not told apart".into(),
        colour: 6,
        of_each: vec![0.0, 0.0, ms],
    });
    let parts: Vec<Part> = parts.chain(whole).collect();
    let label =
        "Time of one operation on both sides, by what it is spent on; the table below holds the values.";
    let chart = stacked("ms an operation", "ms", &bars, &parts);
    Figure {
        title: "Where the time of one operation goes".into(),
        caption:
            "C is computing between operations, V what virtualization adds to it, S the system code of the \
                  operation and waiting for a processor, L the operation itself ([ESX Disk 2003], Figure 9)."
                .into(),
        drawings: vec![Drawing::only("breakdown", label.into(), Variant::chart("", chart))],
        values: Values::Own,
    }
}

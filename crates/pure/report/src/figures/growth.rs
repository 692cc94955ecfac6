//! Why a transaction takes more cycles on one side: slower instructions and more of them ([Platform 2014], Table 5).

use plotly::common::{Marker, Orientation};
use plotly::layout::{AxisType, BarMode, CategoryOrder, RangeMode};
use plotly::{Bar, Traces};
use virtbench_model::ApplicationAnalysis;
use virtbench_record::Quantity;

use super::style::{HOVER, axis, layout, palette};
use super::{Choice, Drawing, Figure, Variant};
use crate::format::significant;

/// A bar for each side: the reference's cycles, what more instructions add to them, and what slower ones add. Nothing where
/// the three figures are not known.
pub(crate) fn growth(analysis: &ApplicationAnalysis) -> Option<Figure> {
    let base = analysis.sides.first()?.known.get(&Quantity::CyclesPerTransaction)?.mean;
    let mut names = vec![analysis.sides[0].name.clone()];
    let mut parts = vec![[base, 0.0, 0.0]];
    for against in &analysis.ratios {
        let growth = against.growth?;
        names.push(analysis.sides[against.side].name.clone());
        let further = base * (growth.instructions - 1.0);
        let slower = base * (growth.cycles - growth.instructions);
        parts.push([base + further.min(0.0) + slower.min(0.0), further.max(0.0), slower.max(0.0)]);
    }
    let mut traces = Traces::new();
    for (index, (name, colour)) in
        [("as on the reference", 0), ("more instructions", 2), ("slower instructions", 1)]
            .into_iter()
            .enumerate()
    {
        let values: Vec<f64> = parts.iter().map(|part| part[index]).collect();
        let hover = names.iter().zip(&values);
        let hover =
            hover.map(|(side, cycles)| format!("{side}<br>{name}: <b>{} cycles</b>", significant(*cycles)));
        traces.push(
            Bar::new(values.clone(), names.clone())
                .name(name)
                .orientation(Orientation::Horizontal)
                .marker(Marker::new().color(palette(colour).0))
                .hover_text_array(hover.collect())
                .hover_info(HOVER),
        );
    }
    let layout = layout()
        .bar_mode(BarMode::Stack)
        .x_axis(axis("cycles a transaction").range_mode(RangeMode::ToZero))
        .y_axis(
            axis("")
                .show_grid(false)
                .type_(AxisType::Category)
                .category_order(CategoryOrder::Array)
                .category_array(names.iter().rev().cloned().collect::<Vec<_>>()),
        )
        .height(240);
    Some(Figure {
        title: "Cycles of a transaction".into(),
        caption: "Cycles are cycles an instruction (CPI) times instructions (path length). What CPI adds is counted at \
                  the longer path ([Platform 2014], Table 5)."
            .into(),
        key: Vec::new(),
        drawings: vec![Drawing {
            id: "growth".into(),
            label: "Cycles a transaction on each side, split into those of the reference, of further instructions and of slower ones; the table below holds the values.".into(),
            choice: Choice::Only,
            variants: vec![Variant::new("all", &traces, &layout)],
            first: 0,
        }],
    })
}

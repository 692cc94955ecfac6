//! Where the time of one operation goes, on both sides ([ESX Disk 2003], Figure 9).

use plotly::common::Orientation;
use plotly::layout::{AxisType, BarMode, CategoryOrder, RangeMode};
use plotly::{Bar, Traces};
use virtbench_model::predict::{Breakdown, Part};

use super::style::{HOVER, axis, layout, palette};
use super::{Choice, Drawing, Figure, Variant};
use crate::format::significant;

/// Parts in the order in which they are spent, each with its colour in the palette: the disk as what is
/// native to the question, virtualization as what the VM adds, waiting elsewhere in grey.
const PARTS: [(Part, usize); 7] = [
    (Part::Compute, 4),
    (Part::User, 4),
    (Part::System, 2),
    (Part::Elsewhere, 7),
    (Part::Virtualization, 1),
    (Part::SystemIo, 5),
    (Part::Disk, 0),
];

/// The figure: a bar for each side, and one for what was measured where the prediction was tried.
pub(crate) fn breakdown(names: [&str; 2], sides: &[Breakdown; 2], measured_ms: Option<f64>) -> Figure {
    let mut traces = Traces::new();
    for (part, index) in PARTS {
        let of =
            |side: &Breakdown| side.0.iter().find(|(known, _)| *known == part).map_or(0.0, |(_, ms)| *ms);
        let values: Vec<f64> = sides.iter().map(of).collect();
        if values.iter().all(|ms| *ms <= 0.0) {
            continue;
        }
        let hover = names
            .iter()
            .zip(&values)
            .map(|(name, ms)| format!("{name}<br>{}: <b>{} ms</b>", part.name(), significant(*ms)))
            .collect();
        traces.push(
            Bar::new(values, names.map(str::to_owned).to_vec())
                .name(part.name())
                .orientation(Orientation::Horizontal)
                .marker(plotly::common::Marker::new().color(palette(index).0))
                .hover_text_array(hover)
                .hover_info(HOVER),
        );
    }
    let in_fact = format!("{}, in fact", names[1]);
    if let Some(ms) = measured_ms {
        traces.push(
            Bar::new(vec![ms], vec![in_fact.clone()])
                .name("measured, not told apart")
                .orientation(Orientation::Horizontal)
                .marker(plotly::common::Marker::new().color(palette(6).0))
                .hover_text_array(vec![format!("{in_fact}: <b>{} ms</b>", significant(ms))])
                .hover_info(HOVER),
        );
    }
    let categories = measured_ms.map(|_| in_fact.as_str()).into_iter().chain([names[1], names[0]]);
    let layout = layout()
        .bar_mode(BarMode::Stack)
        .x_axis(axis("ms an operation").range_mode(RangeMode::ToZero))
        .y_axis(
            axis("")
                .show_grid(false)
                .type_(AxisType::Category)
                .category_order(CategoryOrder::Array)
                .category_array(categories.map(str::to_owned).collect::<Vec<_>>()),
        )
        .height(260);
    Figure {
        title: "Where the time of one operation goes".into(),
        caption: "C is computing between operations, V what virtualization adds to it, S the system code of the \
                  operation and waiting for a processor, L the operation itself ([ESX Disk 2003], Figure 9)."
            .into(),
        key: Vec::new(),
        drawings: vec![Drawing {
            id: "breakdown".into(),
            label: "Time of one operation on both sides, by what it is spent on; the table below holds the values."
                .into(),
            choice: Choice::Only,
            variants: vec![Variant::new("all", &traces, &layout)],
            first: 0,
        }],
    }
}

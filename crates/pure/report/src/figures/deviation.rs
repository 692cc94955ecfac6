//! How far VMs disturb each other: bars ([VirtualFence 2013], Figure 1), and who disturbs whom.

use plotly::common::{ColorBar, ColorScale, ColorScaleElement, Marker, Title};
use plotly::layout::{Annotation, AxisType, BarMode, RangeMode};
use plotly::{Bar, HeatMap, Traces};
use virtbench_model::Span;
use virtbench_model::together::{Deviated, DeviationAnalysis, DisturbedVm};

use super::profile::whiskers;
use super::style::{HOVER, axis, layout, palette};
use super::{Drawing, Figure, Variant};
use crate::format::significant;
use crate::matrix::Matrix;

type Of = fn(&DisturbedVm) -> Option<Deviated>;
const QUANTITIES: [(&str, Of); 2] = [("throughput", |vm| vm.throughput), ("response time", |vm| vm.response)];

/// A bar for each VM that ran with all others; nothing where there is no deviation.
pub(crate) fn deviations(analysis: &DeviationAnalysis) -> Vec<Figure> {
    analysis.sets.iter().filter_map(|set| bars(&set.vms)).collect()
}

fn bars(vms: &[DisturbedVm]) -> Option<Figure> {
    let mut traces = Traces::new();
    let mut drawn = false;
    for (index, (quantity, of)) in QUANTITIES.into_iter().enumerate() {
        let known: Vec<_> = vms.iter().filter_map(|vm| Some((vm, of(vm)?))).collect();
        drawn |= !known.is_empty();
        let values: Vec<f64> = known.iter().map(|(_, deviated)| deviated.delta.mean).collect();
        let spans: Vec<Option<Span>> = known
            .iter()
            .map(|(_, deviated)| Some(Span { low: deviated.range.0, high: deviated.range.1 }))
            .collect();
        let hover = known.iter().map(|(vm, deviated)| {
            format!("{}, {quantity}: <b>{} %</b>", vm_name(vm), significant(deviated.delta.mean))
        });
        traces.push(
            Bar::new(known.iter().map(|(vm, _)| vm_name(vm)).collect(), values.clone())
                .name(quantity)
                .marker(Marker::new().color(palette(index).0))
                .hover_text_array(hover.collect())
                .hover_info(HOVER)
                .error_y(whiskers(&values, &spans)),
        );
    }
    if !drawn {
        return None;
    }
    let layout = layout()
        .bar_mode(BarMode::Group)
        .x_axis(axis("").type_(AxisType::Category))
        .y_axis(axis("deviation, %").range_mode(RangeMode::ToZero));
    let caption = "How far each VM beside the others is from itself alone, in percent of that. Bars are means, \
                   whiskers reach from the least to the greatest repetition. Lower is better.";
    Some(Figure {
        title: "Deviation".into(),
        caption: caption.into(),
        key: Vec::new(),
        drawings: vec![Drawing::only("deviation", caption.into(), Variant::new("bars", &traces, &layout))],
    })
}

/// A VM and its share.
pub(crate) fn vm_name(vm: &DisturbedVm) -> String {
    vm.share_percent.map_or_else(|| vm.vm.clone(), |share| format!("{} ({} %)", vm.vm, significant(share)))
}

/// Heat maps of who disturbs whom, of throughput and of response time.
pub(crate) fn matrix(matrix: &Matrix<'_>) -> Vec<Figure> {
    QUANTITIES.into_iter().filter_map(|(quantity, of)| heat_map(matrix, quantity, of)).collect()
}

fn heat_map(matrix: &Matrix<'_>, quantity: &str, of: Of) -> Option<Figure> {
    let count = matrix.workloads.len();
    let cell = |victim: usize, aggressor: usize| matrix.cell(victim, aggressor).and_then(of);
    let cells: Vec<Vec<Option<f64>>> = (0..count)
        .map(|victim| (0..count).map(|by| cell(victim, by).map(|deviated| deviated.delta.mean)).collect())
        .collect();
    let most = cells.iter().flatten().flatten().copied().reduce(f64::max)?;
    let hover: Vec<Vec<String>> = cells
        .iter()
        .enumerate()
        .map(|(victim, row)| {
            let text = |(aggressor, value): (usize, &Option<f64>)| {
                let value = value.map_or_else(|| "–".into(), significant);
                format!("{} beside {}: {value} %", matrix.workloads[victim], matrix.workloads[aggressor])
            };
            row.iter().enumerate().map(text).collect()
        })
        .collect();
    let scale = [ColorScaleElement(0.0, "#f5f7fa".into()), ColorScaleElement(1.0, "#D55E00".into())];
    let names: Vec<String> = (1..=count).map(|number| format!("workload {number}")).collect();
    let written = cells.iter().enumerate().flat_map(|(victim, row)| {
        let names = &names;
        row.iter().enumerate().filter_map(move |(aggressor, value)| {
            let mark = if matrix.is_overloaded(victim, aggressor) { " *" } else { "" };
            let text = format!("{}{mark}", significant((*value)?));
            let place = (names[aggressor].clone(), names[victim].clone());
            Some(Annotation::new().x(place.0).y(place.1).text(text).show_arrow(false))
        })
    });
    let written: Vec<Annotation> = written.collect();
    let heat = HeatMap::new(names.clone(), names, cells)
        .color_scale(ColorScale::Vector(scale.into()))
        .zmin(0.0)
        .zmax(most.max(1.0))
        .color_bar(ColorBar::new().thickness(10).outline_width(0).title(Title::with_text("%")))
        .text_matrix(hover)
        .hover_info(HOVER);
    let mut traces = Traces::new();
    traces.push(heat);
    let layout = layout()
        .annotations(written)
        .x_axis(axis("beside").type_(AxisType::Category))
        .y_axis(axis("disturbed").type_(AxisType::Category));
    let caption = format!(
        "Deviation of {quantity} in percent: of the workload of the row, beside the workload of the column; \
         * no finding, since the host was overloaded."
    );
    let id = format!("matrix-{}", quantity.replace(' ', "-"));
    Some(Figure {
        title: format!("Who disturbs whom: {quantity}"),
        caption: caption.clone(),
        key: Vec::new(),
        drawings: vec![Drawing::only(&id, caption, Variant::new("matrix", &traces, &layout))],
    })
}

//! An application's metrics: a bar for each side, alone and beside neighbours.

use plotly::common::{Marker, Mode};
use plotly::layout::{AxisType, BarMode, RangeMode};
use plotly::{Bar, Scatter, Traces};
use virtbench_model::Estimate;
use virtbench_model::application_study::{ApplicationSideFound, ApplicationStudyAnalysis};
use virtbench_record::{ApplicationPlan, ApplicationRecord};

use super::style::{HOVER, axis, layout, palette};
use super::{Drawing, Figure, Variant};
use crate::format::{scaled, with_unit};

/// A drawing for each metric. Nothing where nothing was measured.
pub(crate) fn application(
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
    records: &[ApplicationRecord],
) -> Vec<Figure> {
    if records.iter().all(|record| record.measured().is_none()) {
        return Vec::new();
    }
    let drawings = (0..plan.metrics.len()).map(|index| drawing(plan, analysis, records, index)).collect();
    vec![Figure {
        title: "Each metric on each side".into(),
        caption:
            "Bars are means; each point is a repetition, which had a boot and a copy of the data of its own."
                .into(),
        key: Vec::new(),
        drawings,
    }]
}

fn drawing(
    plan: &ApplicationPlan,
    analysis: &ApplicationStudyAnalysis,
    records: &[ApplicationRecord],
    index: usize,
) -> Drawing {
    let metric = &plan.metrics[index];
    let (factor, unit) = scaled(&metric.unit);
    let mut traces = Traces::new();
    for (number, neighbours) in plan.company().into_iter().enumerate() {
        let name = if neighbours == 0 { "alone".to_owned() } else { format!("beside {neighbours}") };
        let mean = |side: &ApplicationSideFound| -> Option<Estimate> {
            let found = &side.metrics[index];
            if neighbours == 0 { found.alone } else { found.beside }
        };
        let known: Vec<(String, f64)> = analysis
            .sides
            .iter()
            .filter_map(|side| Some((side.side.name.clone(), mean(side)?.mean)))
            .collect();
        let hover = known
            .iter()
            .map(|(side, value)| format!("{side}, {name}: <b>{}</b>", with_unit(*value, &metric.unit)));
        traces.push(
            Bar::new(
                known.iter().map(|(side, _)| side.clone()).collect(),
                known.iter().map(|(_, value)| value * factor).collect(),
            )
            .name(&name)
            .offset_group(number.to_string())
            .marker(Marker::new().color(palette(number).0))
            .hover_text_array(hover.collect())
            .hover_info(HOVER),
        );
    }
    traces.push(points(records, &metric.name, factor));
    let layout = layout()
        .bar_mode(BarMode::Group)
        .x_axis(axis("").type_(AxisType::Category))
        .y_axis(axis(&format!("{}, {unit}", metric.name)).range_mode(RangeMode::ToZero))
        .height(340);
    let label = format!("{} on each side; the table below holds the values.", metric.name);
    Drawing::only(&format!("metric-{index}"), label, Variant::new(&metric.name, &traces, &layout))
}

/// The repetitions alone.
fn points(records: &[ApplicationRecord], metric: &str, factor: f64) -> Box<dyn plotly::Trace> {
    let alone = records.iter().filter(|record| record.neighbours == 0);
    let known: Vec<(String, f64)> = alone
        .filter_map(|record| Some((record.side.clone(), record.measured()?.values.get(metric)? * factor)))
        .collect();
    Scatter::new(
        known.iter().map(|(side, _)| side.clone()).collect::<Vec<_>>(),
        known.iter().map(|(_, value)| *value).collect::<Vec<_>>(),
    )
    .name("a repetition alone")
    .mode(Mode::Markers)
    .marker(Marker::new().color(palette(2).0).size(7))
}

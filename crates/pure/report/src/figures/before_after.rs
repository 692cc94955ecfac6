//! Two runs compared: every point's ratio, after to before.

use plotly::Scatter;
use plotly::Traces;
use plotly::common::{DashType, Marker, Mode};
use virtbench_model::before_after::{ChangedEnvironment, Quantity};
use virtbench_model::{BeforeAfter, Span};

use super::profile::whiskers;
use super::ratio::level;
use super::style::{HOVER, MUTED, VM_COLOUR, axis, layout};
use super::{Drawing, Figure, Variant};
use crate::format::{ratio, ratio_span};

/// A figure for each environment, throughput beside latency.
pub(crate) fn before_after(compared: &BeforeAfter) -> Vec<Figure> {
    let figures = compared.environments.iter().enumerate().map(|(index, environment)| Figure {
        title: environment.name.clone(),
        caption: format!(
            "Each dot is a point of {}: after divided by before. Whiskers are 90 % intervals; dashed lines are the margin.",
            environment.name
        ),
        key: Vec::new(),
        drawings: [Quantity::Throughput, Quantity::P99Latency]
            .into_iter()
            .filter_map(|quantity| drawing(index, environment, quantity, compared.margin))
            .collect(),
    });
    figures.filter(|figure| !figure.drawings.is_empty()).collect()
}

fn drawing(
    index: usize,
    environment: &ChangedEnvironment,
    quantity: Quantity,
    margin: f64,
) -> Option<Drawing> {
    let points = environment.points.iter().filter_map(|point| Some((point, quantity.find(&point.changes)?)));
    let points: Vec<_> = points.collect();
    if points.is_empty() {
        return None;
    }
    let values: Vec<f64> = points.iter().map(|(_, change)| change.ratio).collect();
    let spans: Vec<Option<Span>> =
        points.iter().map(|(_, change)| change.interval.map(|[low, high]| Span { low, high })).collect();
    let hover = points.iter().zip(&spans).map(|((point, change), span)| {
        let interval =
            span.map_or_else(|| "no interval".into(), |span| format!("90 %: {}", ratio_span(span)));
        format!("{}<br><b>{}</b>, {}<br>{interval}", point.point, ratio(change.ratio), change.verdict.name())
    });
    let dots = Scatter::new((1..=points.len()).collect(), values.clone())
        .mode(Mode::Markers)
        .marker(Marker::new().color(VM_COLOUR).size(8))
        .hover_text_array(hover.collect())
        .hover_info(HOVER)
        .show_legend(false)
        .error_y(whiskers(&values, &spans));
    let mut traces = Traces::new();
    traces.push(dots);
    let layout = layout()
        .x_axis(axis("points").show_grid(false).range(vec![0.4, points.len() as f64 + 0.6]))
        .y_axis(axis(&format!("{}, after / before", quantity.name())))
        .shapes(vec![
            level(1.0, MUTED, DashType::Solid),
            level(1.0 + margin, MUTED, DashType::Dash),
            level(1.0 / (1.0 + margin), MUTED, DashType::Dash),
        ]);
    let label = format!(
        "{} of {} at {} points, after divided by before.",
        quantity.name(),
        environment.name,
        points.len()
    );
    let id = format!("change-{index}-{}", quantity.name().replace(' ', "-"));
    Some(Drawing::only(&id, label, Variant::new(quantity.name(), &traces, &layout)))
}

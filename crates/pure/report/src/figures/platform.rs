//! The figures of a platform's domains as bars: how much of this host is left.

use virtbench_chart::{Axis, Chart, Form, Point, Series, look};
use virtbench_model::platform::{DomainScore, PlatformScore};

use super::style::rows;
use super::{Drawing, Figure, Values, Variant};
use crate::format::ratio;

/// A drawing for each domain. Nothing where nothing was measured.
pub(crate) fn platform(found: &PlatformScore) -> Vec<Figure> {
    let measured: Vec<&DomainScore> =
        found.domains.iter().filter(|domain| !domain.metrics.is_empty()).collect();
    if measured.is_empty() {
        return Vec::new();
    }
    let drawings = measured.iter().enumerate().map(|(index, domain)| bars(index, domain)).collect();
    vec![Figure {
        title: "How much of this host a VM reaches".into(),
        caption: "Each bar is one figure as a multiple of this host's own, turned round where less is better: 1 is no loss.".into(),
        drawings,
        values: Values::Own,
    }]
}

fn bars(index: usize, domain: &DomainScore) -> Drawing {
    let names: Vec<String> = domain.metrics.iter().map(|metric| metric.short_name().to_owned()).collect();
    let points = domain.metrics.iter().enumerate().map(|(row, metric)| {
        let hover = format!("{}: {}", metric.name, ratio(metric.ratio));
        Point::new(metric.ratio, row as f64).hover(hover).label(ratio(metric.ratio))
    });
    let series =
        Series { name: "of this host".into(), look: look(0), form: Form::Bars, points: points.collect() };
    let axis = Axis::from_zero(format!("{}, times this host", domain.name));
    let chart = Chart { series: vec![series], ..Chart::new(axis, rows(&names)) };
    let label =
        format!("The figures of {} as multiples of this host's; the table holds the values.", domain.name);
    Drawing::only(&format!("domain-{index}"), label, Variant::chart(&domain.name, chart))
}

//! The figures of a platform's domains as bars: how much of what they are compared with is left.

use virtbench_chart::{Axis, Chart, Form, Point, Series, look};
use virtbench_model::platform::DomainScore;

use super::style::rows;
use super::{Drawing, Figure, Table, Values, Variant};
use crate::card::Card;
use crate::format::{ratio, ratio_span};

/// The domains beside each other. Nothing where nothing was measured.
pub(crate) fn platform_domains(card: &Card<'_>) -> Option<Figure> {
    let all: Vec<(&DomainScore, virtbench_model::Estimate)> =
        card.found.domains.iter().filter_map(|domain| Some((domain, domain.ratio?))).collect();
    if all.is_empty() {
        return None;
    }
    let base = card.plan.base();
    let names: Vec<String> = all.iter().map(|(domain, _)| domain.name.clone()).collect();
    let points = all.iter().enumerate().map(|(row, (domain, found))| {
        let hover = format!("{}: {} of {base}", domain.name, ratio(found.mean));
        let interval = found.span().map(|span| [span.low, span.high]);
        Point::new(found.mean, row as f64).hover(hover).label(ratio(found.mean)).between(interval)
    });
    let series =
        Series { name: format!("of {base}"), look: look(0), form: Form::Bars, points: points.collect() };
    let axis = Axis::from_zero(format!("times {base}"));
    let chart = Chart { series: vec![series], ..Chart::new(axis, rows(&names)) };
    let row = |(domain, found): &(&DomainScore, virtbench_model::Estimate)| {
        let span = found.span().map_or_else(String::new, ratio_span);
        vec![domain.name.clone(), ratio(found.mean), span, domain.weight.to_string()]
    };
    let table = Table {
        header: ["domain", "ratio", "95 % interval", "weight"].map(String::from).to_vec(),
        names: 1,
        rows: all.iter().map(row).collect(),
        note: String::new(),
    };
    Some(Figure {
        title: "Domain by domain".into(),
        caption: format!(
            "1 is {base}, more is better. Each bar is the geometric mean of a domain's figures."
        ),
        drawings: vec![Drawing::only(
            "domains",
            format!("The domains as multiples of {base}; the table holds the values."),
            Variant::chart("", chart),
        )],
        values: Values::Given(table),
    })
}

/// A drawing for each domain. Nothing where nothing was measured.
pub(crate) fn platform(card: &Card<'_>) -> Vec<Figure> {
    let measured: Vec<&DomainScore> =
        card.found.domains.iter().filter(|domain| !domain.metrics.is_empty()).collect();
    if measured.is_empty() {
        return Vec::new();
    }
    let base = card.plan.base();
    let drawings = measured.iter().enumerate().map(|(index, domain)| bars(index, domain, base)).collect();
    vec![Figure {
        title: format!("How much of {base} is reached"),
        caption: format!(
            "Each bar is one figure as a multiple of that of {base}, turned round where less is better: 1 is no loss."
        ),
        drawings,
        values: Values::Own,
    }]
}

fn bars(index: usize, domain: &DomainScore, base: &str) -> Drawing {
    let names: Vec<String> = domain.metrics.iter().map(|metric| metric.short_name().to_owned()).collect();
    let points = domain.metrics.iter().enumerate().map(|(row, metric)| {
        let hover = format!("{}: {}", metric.name, ratio(metric.ratio));
        Point::new(metric.ratio, row as f64).hover(hover).label(ratio(metric.ratio))
    });
    let series =
        Series { name: format!("of {base}"), look: look(0), form: Form::Bars, points: points.collect() };
    let axis = Axis::from_zero(format!("{}, times {base}", domain.name));
    let chart = Chart { series: vec![series], ..Chart::new(axis, rows(&names)) };
    let label = format!(
        "The figures of {} as multiples of those of {base}; the table holds the values.",
        domain.name
    );
    Drawing::only(&format!("domain-{index}"), label, Variant::chart(&domain.name, chart))
}

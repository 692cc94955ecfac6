//! Desktops a processor against what users wait ([Platform 2014], Figure 3), and every operation over time.

use virtbench_chart::{Axis, Chart, Dash, Form, Point, Rule, Series, look};
use virtbench_model::desktops::DesktopsAnalysis;
use virtbench_record::{DesktopGroup, DesktopsPlan, DesktopsRecord};

use super::{Drawing, Figure, Values, Variant};
use crate::format::{SECOND_NS, significant};

/// Operations that a pointer can read, at most: a page with more would be large.
const READABLE_MOST: usize = 1_000;

/// Both groups' percentile, with its interval, each with its limit. Nothing without a measurement.
pub(crate) fn desktops(plan: &DesktopsPlan, analysis: &DesktopsAnalysis) -> Option<Figure> {
    let mut numbers = analysis.numbers.iter().flat_map(|at| &at.groups);
    numbers.any(|group| group.percentile.is_some()).then_some(())?;
    let seconds = |ns: u64| ns as f64 / SECOND_NS;
    let (mut series, mut rules) = (Vec::new(), Vec::new());
    for (index, group) in DesktopGroup::ALL.into_iter().enumerate() {
        let points = analysis.numbers.iter().filter_map(|at| {
            let found = at.groups.iter().find(|one| one.group == group)?.percentile?;
            let (value, high) = (seconds(found.ns), seconds(found.high_ns.unwrap_or(found.ns)));
            let name = group.name();
            let hover = format!("group {name}, {} desktops: {} s", at.desktops, significant(value));
            let interval = Some([seconds(found.low_ns), high]);
            Some(Point::new(at.per_processor, value).between(interval).hover(hover))
        });
        let name = format!("group {}", group.name());
        series.push(Series { name, look: look(index), form: Form::Marked, points: points.collect() });
        let label = format!("limit of {}", group.name());
        rules.push(Rule { at: seconds(plan.limit_ns(group)), label, look: look(index).dashed(Dash::Dotted) });
    }
    let across = if plan.are_existing() { "desktops" } else { "desktops a processor" };
    let chart = Chart { series, rules, ..Chart::new(Axis::from_zero(across), Axis::from_zero("seconds")) };
    let label =
        format!("What users wait against {across}, a line for each group; the table below holds the values.");
    Some(Figure {
        title: format!("What users wait against {across}"),
        caption: format!(
            "{} % of the operations of a group took no longer, those left out with which all users begin at once. \
             Whiskers are 95 % intervals; dotted lines are the limits.",
            significant(plan.share * 100.0)
        ),
        drawings: vec![Drawing::only("desktops", label, Variant::chart("seconds", chart))],
        values: Values::Own,
    })
}

/// Every operation of the greatest number of desktops, when it began and how long it took.
pub(crate) fn desktops_timeline(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<Figure> {
    let record = records
        .iter()
        .filter(|record| record.measured().is_some_and(|measured| !measured.operations.is_empty()))
        .max_by_key(|record| record.key.desktops)?;
    let measured = record.measured()?;
    let is_readable = measured.operations.len() <= READABLE_MOST;
    let series = DesktopGroup::ALL.into_iter().enumerate().map(|(index, group)| {
        let points = measured.operations.iter().filter_map(|done| {
            let operation = plan.operations.get(done.operation as usize)?;
            let times = (operation.group == group).then_some(done.times?)?;
            let (begun, latency) = (done.begun_ns as f64 / SECOND_NS, times.latency_ns as f64 / SECOND_NS);
            let name = format!("{} {}", operation.application, operation.operation);
            let hover = format!("user {}, {name}: {} s", done.user + 1, significant(latency));
            Some(Point::new(begun, latency).hover(if is_readable { hover } else { String::new() }))
        });
        let name = format!("group {}", group.name());
        Series { name, look: look(index), form: Form::Marks, points: points.collect() }
    });
    let chart = Chart {
        series: series.collect(),
        ..Chart::new(Axis::from_zero("seconds since users began"), Axis::from_zero("seconds"))
    };
    let label = format!(
        "Every operation of {} desktops over time. The tables of operations hold their percentiles.",
        record.key.desktops
    );
    Some(Figure {
        title: format!("Every operation of {} desktops", record.key.desktops),
        caption: "At the left all users begin at once.".into(),
        drawings: vec![Drawing::only("desktops-time", label, Variant::chart("seconds", chart))],
        values: Values::Under("Operations"),
    })
}

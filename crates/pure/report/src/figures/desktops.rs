//! Desktops a processor against what users wait ([Platform 2014], Figure 3), and every operation over time.

use plotly::common::{ErrorData, ErrorType, Line, Marker, Mode};
use plotly::layout::RangeMode;
use plotly::{Scatter, Traces};
use virtbench_model::desktops::DesktopsAnalysis;
use virtbench_record::{DesktopGroup, DesktopsPlan, DesktopsRecord};

use super::style::{HOVER, axis, layout, palette};
use super::{Drawing, Figure, Variant};
use crate::format::{SECOND_NS, significant};

/// Both groups' percentile, with its interval, each with its limit. Nothing without a measurement.
pub(crate) fn desktops(plan: &DesktopsPlan, analysis: &DesktopsAnalysis) -> Option<Figure> {
    analysis
        .numbers
        .iter()
        .any(|at| at.groups.iter().any(|group| group.percentile.is_some()))
        .then_some(())?;
    let mut traces = Traces::new();
    for (index, group) in DesktopGroup::ALL.into_iter().enumerate() {
        let known: Vec<_> = analysis
            .numbers
            .iter()
            .filter_map(|at| Some((at, at.groups.iter().find(|one| one.group == group)?.percentile?)))
            .collect();
        let seconds = |ns: u64| ns as f64 / SECOND_NS;
        let above = known.iter().map(|(_, found)| seconds(found.high_ns.unwrap_or(found.ns) - found.ns));
        let below = known.iter().map(|(_, found)| seconds(found.ns - found.low_ns));
        let hover = known.iter().map(|(at, found)| {
            let name = group.name();
            format!("group {name}, {} desktops: <b>{} s</b>", at.desktops, significant(seconds(found.ns)))
        });
        let places: Vec<f64> = known.iter().map(|(at, _)| at.per_processor).collect();
        traces.push(
            Scatter::new(
                places.clone(),
                known.iter().map(|(_, found)| seconds(found.ns)).collect::<Vec<_>>(),
            )
            .name(format!("group {}", group.name()))
            .mode(Mode::LinesMarkers)
            .line(Line::new().color(palette(index).0))
            .marker(Marker::new().color(palette(index).0).size(8))
            .error_y(ErrorData::new(ErrorType::Data).array(above.collect()).array_minus(below.collect()))
            .hover_text_array(hover.collect())
            .hover_info(HOVER),
        );
        let limit = seconds(plan.limit_ns(group));
        traces.push(
            Scatter::new(places.clone(), vec![limit; places.len()])
                .name(format!("limit of {}", group.name()))
                .mode(Mode::Lines)
                .line(Line::new().color(palette(index).0).dash(plotly::common::DashType::Dot)),
        );
    }
    let across = if plan.are_existing() { "desktops" } else { "desktops a processor" };
    let layout = layout()
        .x_axis(axis(across).range_mode(RangeMode::ToZero))
        .y_axis(axis("seconds").range_mode(RangeMode::ToZero))
        .height(360);
    let label =
        format!("What users wait against {across}, a line for each group; the table below holds the values.");
    Some(Figure {
        title: format!("What users wait against {across}"),
        caption: format!(
            "{} % of the operations of a group took no longer, those left out with which all users begin at once. \
             Bars are 95 % intervals; dots are the limits.",
            significant(plan.share * 100.0)
        ),
        key: Vec::new(),
        drawings: vec![Drawing::only("desktops", label, Variant::new("seconds", &traces, &layout))],
    })
}

/// Every operation of the greatest number of desktops, when it began and how long it took.
pub(crate) fn desktops_timeline(plan: &DesktopsPlan, records: &[DesktopsRecord]) -> Option<Figure> {
    let record = records
        .iter()
        .filter(|record| record.measured().is_some_and(|measured| !measured.operations.is_empty()))
        .max_by_key(|record| record.desktops)?;
    let measured = record.measured()?;
    let mut traces = Traces::new();
    for (index, group) in DesktopGroup::ALL.into_iter().enumerate() {
        let own: Vec<_> = measured
            .operations
            .iter()
            .filter_map(|done| {
                let operation = plan.operations.get(done.operation as usize)?;
                (operation.group == group).then_some((done, operation, done.times?))
            })
            .collect();
        let hover = own.iter().map(|(done, operation, times)| {
            let name = format!("{} {}", operation.application, operation.operation);
            let latency = significant(times.latency_ns as f64 / SECOND_NS);
            format!("user {}, {name}: <b>{latency} s</b>", done.user + 1)
        });
        traces.push(
            Scatter::new(
                own.iter().map(|(done, ..)| done.begun_ns as f64 / SECOND_NS).collect::<Vec<_>>(),
                own.iter().map(|(.., times)| times.latency_ns as f64 / SECOND_NS).collect::<Vec<_>>(),
            )
            .name(format!("group {}", group.name()))
            .mode(Mode::Markers)
            .marker(Marker::new().color(palette(index).0).size(6))
            .hover_text_array(hover.collect())
            .hover_info(HOVER),
        );
    }
    let layout = layout()
        .x_axis(axis("seconds since users began").range_mode(RangeMode::ToZero))
        .y_axis(axis("seconds").range_mode(RangeMode::ToZero))
        .height(320);
    let label = format!("Every operation of {} desktops over time.", record.desktops);
    Some(Figure {
        title: format!("Every operation of {} desktops", record.desktops),
        caption: "At the left all users begin at once.".into(),
        key: Vec::new(),
        drawings: vec![Drawing::only("desktops-time", label, Variant::new("seconds", &traces, &layout))],
    })
}

//! Management operations: where their time goes, over time, and over the number of VMs.

use std::collections::BTreeMap;

use plotly::common::{Line, Marker, Mode, Orientation};
use plotly::layout::{AxisType, BarMode, CategoryOrder, RangeMode};
use plotly::{Bar, Scatter, Traces};
use virtbench_model::operations::{OperationsAnalysis, StepAnalysis};
use virtbench_record::{OperationKind, OperationsRecord, Phase};

use super::style::{HOVER, axis, layout, logarithmic, palette};
use super::{Choice, Drawing, Figure, Variant};
use crate::format::{MILLISECOND_NS, significant};

/// A step's name in a selection.
pub(crate) fn step_name(step: &StepAnalysis) -> String {
    let rate = step
        .per_minute
        .map_or_else(|| "closed loop".into(), |rate| format!("{} a minute", significant(rate)));
    format!("{} VMs, {rate}", step.vms)
}

/// An operation as a reader knows it.
pub(crate) fn kind_name(kind: OperationKind) -> String {
    kind.name().replace('_', " ")
}

/// All figures; those without anything to show are left out.
pub(crate) fn operations(analysis: &OperationsAnalysis, records: &[OperationsRecord]) -> Vec<Figure> {
    [phases(analysis), over_time(records), over_rates(analysis), tenants(records), over_vms(analysis)]
        .into_iter()
        .flatten()
        .collect()
}

/// A stacked bar for each operation, a variant for each step.
fn phases(analysis: &OperationsAnalysis) -> Option<Figure> {
    let steps: Vec<&StepAnalysis> = analysis.steps.iter().filter(|step| step.done() > 0).collect();
    (!steps.is_empty()).then_some(())?;
    Some(Figure {
        title: "Where the time of each operation goes".into(),
        caption: "Means of the operations that were done. Waiting is from the intended start until a client had time; \
                  client is virtbench's own share; then the platform accepts, queues and runs it and says that it is done; \
                  seen is until the guest answers or is gone, or the inventory shows it."
            .into(),
        key: Vec::new(),
        drawings: vec![Drawing {
            id: "operation-phases".into(),
            label: "Mean time of each operation by phase; the table below holds the values.".into(),
            choice: if steps.len() > 1 { Choice::Select("Step") } else { Choice::Only },
            variants: steps.iter().map(|step| stacked(step)).collect(),
            first: 0,
        }],
    })
}

fn stacked(step: &StepAnalysis) -> Variant {
    let mut traces = Traces::new();
    let names: Vec<String> = step.kinds.keys().map(|kind| kind_name(*kind)).collect();
    for (index, phase) in Phase::ALL.into_iter().enumerate() {
        let of = |one: &virtbench_model::operations::KindAnalysis| {
            one.phases_ns.get(&phase).map_or(0.0, |ns| ns / MILLISECOND_NS)
        };
        let values: Vec<f64> = step.kinds.values().map(of).collect();
        if values.iter().all(|ms| *ms <= 0.0) {
            continue;
        }
        let hover = names.iter().zip(&values);
        let hover =
            hover.map(|(name, ms)| format!("{name}<br>{}: <b>{} ms</b>", phase.name(), significant(*ms)));
        let hover = hover.collect();
        traces.push(
            Bar::new(values, names.clone())
                .name(phase.name())
                .orientation(Orientation::Horizontal)
                .marker(Marker::new().color(palette(index).0))
                .hover_text_array(hover)
                .hover_info(HOVER),
        );
    }
    let order: Vec<String> = names.iter().rev().cloned().collect();
    let rows = axis("").show_grid(false).type_(AxisType::Category);
    let layout = layout()
        .bar_mode(BarMode::Stack)
        .x_axis(axis("ms an operation").range_mode(RangeMode::ToZero))
        .y_axis(rows.category_order(CategoryOrder::Array).category_array(order))
        .height(140 + 30 * names.len());
    Variant::new(step_name(step), &traces, &layout)
}

/// The median of each operation, piece by piece.
fn over_time(records: &[OperationsRecord]) -> Option<Figure> {
    let measured: Vec<_> = records.iter().filter_map(|record| Some((record, record.measured()?))).collect();
    (measured.len() > 1).then_some(())?;
    let begun = measured.first()?.0.started_unix_ns;
    let minutes = |record: &OperationsRecord| record.started_unix_ns.saturating_sub(begun) as f64 / 60e9;
    let mut traces = Traces::new();
    for kind in OperationKind::ALL {
        let points: Vec<(f64, f64)> = measured
            .iter()
            .filter_map(|(record, one)| {
                let latency = one.operations.get(&kind)?.latency_ns?;
                Some((minutes(record), latency.p50 as f64 / MILLISECOND_NS))
            })
            .collect();
        push_line(&mut traces, kind, &points, "min");
    }
    let layout = layout()
        .x_axis(axis("minutes since the beginning").range_mode(RangeMode::ToZero))
        .y_axis(logarithmic(axis("median, ms")))
        .height(360);
    Some(Figure {
        title: "Over time".into(),
        caption: "The median of each operation in each piece of the run.".into(),
        key: Vec::new(),
        drawings: vec![Drawing::only(
            "operations-over-time",
            "Median latency of each operation over the time of the run.".into(),
            Variant::new("median", &traces, &layout),
        )],
    })
}

/// What the tenants did, piece by piece, with the rate of operations meanwhile.
fn tenants(records: &[OperationsRecord]) -> Option<Figure> {
    let measured: Vec<_> = records.iter().filter_map(|record| Some((record, record.measured()?))).collect();
    let begun = measured.first()?.0.started_unix_ns;
    let mut lines: BTreeMap<&str, Vec<(f64, f64, String)>> = BTreeMap::new();
    for (record, one) in &measured {
        let minutes = record.started_unix_ns.saturating_sub(begun) as f64 / 60e9;
        let meanwhile = match record.per_minute {
            None => "closed loop".to_owned(),
            Some(rate) if rate <= 0.0 => "no operations".to_owned(),
            Some(rate) => format!("{} operations a minute", significant(rate)),
        };
        for tenant in &one.tenants {
            lines.entry(&tenant.name).or_default().push((minutes, tenant.iops, meanwhile.clone()));
        }
    }
    (!lines.is_empty()).then_some(())?;
    let mut traces = Traces::new();
    for (index, (name, points)) in lines.iter().enumerate() {
        let hover = points.iter().map(|(_, iops, meanwhile)| {
            format!("{name}, {meanwhile}<br><b>{} I/Os a second</b>", significant(*iops))
        });
        traces.push(
            Scatter::new(
                points.iter().map(|point| point.0).collect::<Vec<_>>(),
                points.iter().map(|point| point.1).collect::<Vec<_>>(),
            )
            .name(*name)
            .mode(Mode::LinesMarkers)
            .line(Line::new().color(palette(index).0))
            .marker(Marker::new().color(palette(index).0))
            .hover_text_array(hover.collect())
            .hover_info(HOVER),
        );
    }
    let layout = layout()
        .x_axis(axis("minutes since the beginning").range_mode(RangeMode::ToZero))
        .y_axis(axis("I/Os a second").range_mode(RangeMode::ToZero))
        .height(320);
    Some(Figure {
        title: "What it costs the tenants".into(),
        caption:
            "The I/Os of each tenant in each piece: pieces without operations alternate with those with them."
                .into(),
        key: Vec::new(),
        drawings: vec![Drawing::only(
            "operations-tenants",
            "I/Os a second of each tenant over the time of the run.".into(),
            Variant::new("tenants", &traces, &layout),
        )],
    })
}

/// The median of each operation against the number of VMs, at the lowest rate.
fn over_vms(analysis: &OperationsAnalysis) -> Option<Figure> {
    (!analysis.growth.is_empty()).then_some(())?;
    let mut traces = Traces::new();
    for kind in analysis.growth.keys() {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for step in &analysis.steps {
            let median = step.kinds.get(kind).and_then(|one| one.median_ns());
            let is_first = points.last().is_none_or(|(vms, _)| *vms < f64::from(step.vms));
            if let Some(median) = median.filter(|_| is_first) {
                points.push((f64::from(step.vms), median / MILLISECOND_NS));
            }
        }
        push_line(&mut traces, *kind, &points, "VMs");
    }
    let layout = layout()
        .x_axis(axis("VMs").range_mode(RangeMode::ToZero))
        .y_axis(logarithmic(axis("median, ms")))
        .height(360);
    Some(Figure {
        title: "Over the number of VMs".into(),
        caption: "The median of each operation at the lowest rate ([Platform 2014], Table 6).".into(),
        key: Vec::new(),
        drawings: vec![Drawing::only(
            "operations-over-vms",
            "Median latency of each operation against the number of VMs.".into(),
            Variant::new("median", &traces, &layout),
        )],
    })
}

/// The median of each operation against the rate that was done, a variant for each number of VMs that had several.
fn over_rates(analysis: &OperationsAnalysis) -> Option<Figure> {
    let mut by_vms: BTreeMap<u32, Vec<(f64, &StepAnalysis)>> = BTreeMap::new();
    for step in &analysis.steps {
        if let Some(rate) = step.achieved {
            by_vms.entry(step.vms).or_default().push((rate.mean, step));
        }
    }
    by_vms.retain(|_, steps| steps.len() > 1);
    (!by_vms.is_empty()).then_some(())?;
    let variants = by_vms.iter_mut().map(|(vms, steps)| {
        steps.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut traces = Traces::new();
        for kind in OperationKind::ALL {
            let median = |(rate, step): &(f64, &StepAnalysis)| {
                Some((*rate, step.kinds.get(&kind)?.median_ns()? / MILLISECOND_NS))
            };
            push_line(&mut traces, kind, &steps.iter().filter_map(median).collect::<Vec<_>>(), "a minute");
        }
        let layout = layout()
            .x_axis(axis("operations a minute").range_mode(RangeMode::ToZero))
            .y_axis(logarithmic(axis("median, ms")))
            .height(360);
        Variant::new(format!("{vms} VMs"), &traces, &layout)
    });
    let variants: Vec<Variant> = variants.collect();
    Some(Figure {
        title: "Over the rate".into(),
        caption:
            "The median of each operation against the operations a minute that were done, all kinds together."
                .into(),
        key: Vec::new(),
        drawings: vec![Drawing {
            id: "operations-over-rates".into(),
            label: "Median latency of each operation against the rate of operations.".into(),
            choice: if variants.len() > 1 { Choice::Select("VMs") } else { Choice::Only },
            first: variants.len() - 1,
            variants,
        }],
    })
}

fn push_line(traces: &mut Traces, kind: OperationKind, points: &[(f64, f64)], unit: &str) {
    if points.is_empty() {
        return;
    }
    let name = kind_name(kind);
    let hover = points
        .iter()
        .map(|(x, ms)| format!("{name}<br>{} {unit}: <b>{} ms</b>", significant(*x), significant(*ms)));
    let colour = palette(kind.index()).0;
    traces.push(
        Scatter::new(
            points.iter().map(|point| point.0).collect::<Vec<_>>(),
            points.iter().map(|point| point.1).collect::<Vec<_>>(),
        )
        .name(&name)
        .mode(Mode::LinesMarkers)
        .line(Line::new().color(colour))
        .marker(Marker::new().color(colour))
        .hover_text_array(hover.collect())
        .hover_info(HOVER),
    );
}

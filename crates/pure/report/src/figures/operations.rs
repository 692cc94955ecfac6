//! Management operations: where their time goes, over time, and over the number of VMs.

use std::collections::BTreeMap;

use virtbench_chart::{Axis, Chart, Form, Point, Scale, Series, look};
use virtbench_model::operations::{KindAnalysis, OperationsAnalysis, StepAnalysis};
use virtbench_record::{OperationKind, OperationsMeasured, OperationsRecord, Phase};

use super::style::{Part, stacked};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{MILLISECOND_NS, significant};

/// The colour of each phase: what waits in grey, the platform's own work in blue, what comes after it in warm ones.
const PHASE_COLOURS: [u8; Phase::ALL.len()] = [7, 3, 5, 2, 0, 4, 1];
/// Nanoseconds in a minute.
const MINUTE_NS: f64 = 60e9;

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
        drawings: vec![Drawing {
            id: "operation-phases".into(),
            label: "Mean time of each operation by phase; the table below holds the values.".into(),
            choice: "step",
            variants: steps.iter().map(|step| Variant::chart(step_name(step), by_phase(step))).collect(),
            first: 0,
        }],
        values: Values::Own,
    })
}

fn by_phase(step: &StepAnalysis) -> Chart {
    let names: Vec<String> = step.kinds.keys().map(|kind| kind_name(*kind)).collect();
    let parts = PHASE_COLOURS.into_iter().zip(Phase::ALL).map(|(colour, phase)| {
        let of = |one: &KindAnalysis| one.phases_ns.get(&phase).map_or(0.0, |ns| ns / MILLISECOND_NS);
        Part { name: phase.name().into(), colour, of_each: step.kinds.values().map(of).collect() }
    });
    stacked("ms an operation", "ms", &names, &parts.collect::<Vec<_>>())
}

/// Every measured piece, with the minutes at which it began.
fn pieces(records: &[OperationsRecord]) -> Vec<(f64, &OperationsRecord, &OperationsMeasured)> {
    let begun =
        records.iter().find(|record| record.measured().is_some()).map_or(0, |record| record.started_unix_ns);
    let minutes = |record: &OperationsRecord| record.started_unix_ns.saturating_sub(begun) as f64 / MINUTE_NS;
    records.iter().filter_map(|record| Some((minutes(record), record, record.measured()?))).collect()
}

/// The median of each operation, piece by piece.
fn over_time(records: &[OperationsRecord]) -> Option<Figure> {
    let pieces = pieces(records);
    (pieces.len() > 1).then_some(())?;
    let lines = OperationKind::ALL.into_iter().map(|kind| {
        let points = pieces.iter().filter_map(|(minutes, _, one)| {
            let latency = one.operations.get(&kind)?.latency_ns?;
            Some((*minutes, latency.p50 as f64 / MILLISECOND_NS))
        });
        line(kind, points, "min")
    });
    let chart = medians(Axis::from_zero("minutes since the beginning"), lines.collect());
    let label =
        "Median latency of each operation over the time of the run; the table below holds the values.";
    Some(Figure {
        title: "Over time".into(),
        caption: "The median of each operation in each piece of the run.".into(),
        drawings: vec![Drawing::only("operations-over-time", label.into(), Variant::chart("median", chart))],
        values: Values::Own,
    })
}

/// What the tenants did, piece by piece, with the rate of operations meanwhile.
fn tenants(records: &[OperationsRecord]) -> Option<Figure> {
    let mut lines: BTreeMap<&str, Vec<Point>> = BTreeMap::new();
    for (minutes, record, one) in pieces(records) {
        let meanwhile = match record.key.per_minute {
            None => "closed loop".to_owned(),
            Some(rate) if rate <= 0.0 => "no operations".to_owned(),
            Some(rate) => format!("{} operations a minute", significant(rate)),
        };
        for tenant in &one.tenants {
            let hover = format!("{}, {meanwhile}\n{} I/Os a second", tenant.name, significant(tenant.iops));
            lines.entry(&tenant.name).or_default().push(Point::new(minutes, tenant.iops).hover(hover));
        }
    }
    (!lines.is_empty()).then_some(())?;
    let series = lines.into_iter().enumerate().map(|(index, (name, points))| Series {
        name: name.into(),
        look: look(index),
        form: Form::Marked,
        points,
    });
    let chart = Chart {
        series: series.collect(),
        ..Chart::new(Axis::from_zero("minutes since the beginning"), Axis::from_zero("I/Os a second"))
    };
    let label = "I/Os a second of each tenant over the time of the run; the table below holds the values.";
    Some(Figure {
        title: "What it costs the tenants".into(),
        caption:
            "The I/Os of each tenant in each piece: pieces without operations alternate with those with them."
                .into(),
        drawings: vec![Drawing::only("operations-tenants", label.into(), Variant::chart("tenants", chart))],
        values: Values::Own,
    })
}

/// The median of each operation against the number of VMs, at the lowest rate.
fn over_vms(analysis: &OperationsAnalysis) -> Option<Figure> {
    (!analysis.growth.is_empty()).then_some(())?;
    let lines = analysis.growth.keys().map(|kind| {
        let mut points: Vec<(f64, f64)> = Vec::new();
        for step in &analysis.steps {
            let median = step.kinds.get(kind).and_then(KindAnalysis::median_ns);
            let is_first = points.last().is_none_or(|(vms, _)| *vms < f64::from(step.vms));
            if let Some(median) = median.filter(|_| is_first) {
                points.push((f64::from(step.vms), median / MILLISECOND_NS));
            }
        }
        line(*kind, points.into_iter(), "VMs")
    });
    let chart = medians(Axis::new("VMs", Scale::Whole), lines.collect());
    let label =
        "Median latency of each operation against the number of VMs; the table below holds the values.";
    Some(Figure {
        title: "Over the number of VMs".into(),
        caption: "The median of each operation at the lowest rate ([Platform 2014], Table 6).".into(),
        drawings: vec![Drawing::only("operations-over-vms", label.into(), Variant::chart("median", chart))],
        values: Values::Own,
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
        let lines = OperationKind::ALL.into_iter().map(|kind| {
            let median = |(rate, step): &(f64, &StepAnalysis)| {
                Some((*rate, step.kinds.get(&kind)?.median_ns()? / MILLISECOND_NS))
            };
            line(kind, steps.iter().filter_map(median), "a minute")
        });
        Variant::chart(format!("{vms} VMs"), medians(Axis::from_zero("operations a minute"), lines.collect()))
    });
    let variants: Vec<Variant> = variants.collect();
    Some(Figure {
        title: "Over the rate".into(),
        caption:
            "The median of each operation against the operations a minute that were done, all kinds together."
                .into(),
        drawings: vec![Drawing {
            id: "operations-over-rates".into(),
            label: "Median latency of each operation against the rate of operations; the table below holds the values."
                .into(),
            choice: "number of VMs",
            first: variants.len() - 1,
            variants,
        }],
        values: Values::Own,
    })
}

fn medians(across: Axis, series: Vec<Series>) -> Chart {
    Chart { series, height_px: 300.0, ..Chart::new(across, Axis::logarithmic("median, ms")) }
}

fn line(kind: OperationKind, points: impl Iterator<Item = (f64, f64)>, unit: &str) -> Series {
    let name = kind_name(kind);
    let points = points.map(|(x, ms)| {
        let hover = format!("{name}\n{} {unit}: {} ms", significant(x), significant(ms));
        Point::new(x, ms).hover(hover)
    });
    let points = points.collect();
    Series { name, look: look(kind.index()), form: Form::Marked, points }
}

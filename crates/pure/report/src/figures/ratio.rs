//! The VM/native ratios in ascending order ([ESX Disk 2003], Figure 8).

use virtbench_chart::{Look, Rule};
use virtbench_model::CurvePoint;

use super::ratios::{Ratio, ratios, short_name};
use super::style::{dashed_rule, look_of};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{ratio, ratio_span};
use crate::run::{Run, Which};

/// The curve, or nothing where there is no ratio.
pub(crate) fn ratio_curve(run: &Run<'_>) -> Option<Figure> {
    let summary = run.comparison.summary.as_ref()?;
    let curve: Vec<Ratio> = run.comparison.curve.iter().map(point).collect();
    let native = Rule { at: 1.0, label: "native".into(), look: Look::of_colour(0) };
    let mean = dashed_rule(summary.mean.value, format!("mean {}", ratio(summary.mean.value)));
    let chart =
        ratios("throughput, VM / native", &curve, &[("VM / native", look_of(Which::Vm))], vec![native, mean]);
    let label = format!(
        "{} ratios of VM to native throughput in ascending order, from {} to {}, mean {}. The table under Every point holds the \
         values.",
        curve.len(),
        ratio(summary.min.ratio.value),
        ratio(summary.max.ratio.value),
        ratio(summary.mean.value)
    );
    Some(Figure {
        title: "VM / native ratio of every point, sorted".into(),
        caption: "Each mark is a point's throughput in the VM divided by its native throughput; a point is named by block size, \
                  % read / % random. The line at 1 is native, the dashed line the geometric mean; whiskers are 95 % intervals over \
                  repetitions. A whisker that crosses the line at 1 leaves open whether there is a difference."
            .into(),
        drawings: vec![Drawing::only("ratio-curve", label, Variant::chart("", chart))],
        values: Values::Under("Every point"),
    })
}

fn point(point: &CurvePoint) -> Ratio {
    let interval = point
        .ratio
        .interval
        .map_or_else(|| "one repetition, no interval".into(), |span| format!("95 %: {}", ratio_span(span)));
    Ratio {
        name: short_name(point.key),
        value: point.ratio.value,
        interval: point.ratio.interval,
        hover: format!("{}\n{} of native\n{interval}", point.key, ratio(point.ratio.value)),
        look: 0,
    }
}

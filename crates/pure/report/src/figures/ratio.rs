//! The VM/native ratios in ascending order ([ESX Disk 2003], Figure 8).

use virtbench_chart::{Look, Rule};
use virtbench_model::CurvePoint;

use super::ratios::{Ratio, ratios, short_name};
use super::style::{dashed_rule, look_of};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{ratio, ratio_span};
use crate::run::{Run, RunGuest};

/// The curve of each kind of guest, or nothing where there is no ratio.
pub(crate) fn ratio_curve(run: &Run<'_>) -> Option<Figure> {
    let drawings: Vec<Drawing> = run.guests.iter().filter_map(|guest| drawing(run, guest)).collect();
    if drawings.is_empty() {
        return None;
    }
    let (title, where_) = match run.only_guest() {
        Some(_) => ("VM / native ratio of every point, sorted", "the VM"),
        None => ("VM / native ratios of every point, sorted", "a VM"),
    };
    Some(Figure {
        title: title.into(),
        caption: format!(
            "Each mark is a point's throughput in {where_} divided by its native throughput; a point is named by block size, \
             % read / % random. The line at 1 is native, the dashed line the geometric mean; whiskers are 95 % intervals over \
             repetitions. A whisker that crosses the line at 1 leaves open whether there is a difference."
        ),
        drawings,
        values: Values::Under("Every point"),
    })
}

fn drawing(run: &Run<'_>, guest: &RunGuest) -> Option<Drawing> {
    let RunGuest { side, comparison } = guest;
    let summary = comparison.summary.as_ref()?;
    let curve: Vec<Ratio> = comparison.curve.iter().map(point).collect();
    let native = Rule { at: 1.0, label: "native".into(), look: Look::of_colour(0) };
    let mean = dashed_rule(summary.mean.value, format!("mean {}", ratio(summary.mean.value)));
    let over = side.over_native();
    let looks = [(over.as_str(), look_of(side))];
    let chart = ratios(&format!("throughput, {over}"), &curve, &looks, vec![native, mean]);
    let label = format!(
        "{} ratios of {} to native throughput in ascending order, from {} to {}, mean {}. The table under Every point holds the \
         values.",
        curve.len(),
        side.name,
        ratio(summary.min.ratio.value),
        ratio(summary.max.ratio.value),
        ratio(summary.mean.value)
    );
    let (id, name) = match run.only_guest() {
        Some(_) => ("ratio-curve".into(), String::new()),
        None => (format!("ratio-curve-{}", side.name.to_lowercase()), over.clone()),
    };
    Some(Drawing::only(&id, label, Variant::chart(name, chart)))
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

//! How machines share: bars with their spread, sums, fairness over time ([Multi-VM 2010], Figures 1 to 9).

use virtbench_chart::{Axis, Chart, Form, Point, Series, look};
use virtbench_model::together::{NeighbourAnalysis, NeighbourMetric, Region, Shared, jain};

use super::style::{ends, rows};
use super::{Drawing, Figure, Values, Variant};
use crate::format::{SECOND_NS, scaled, set_marks, significant};

/// Every figure of which there is anything to draw.
pub(crate) fn shares(analysis: &NeighbourAnalysis) -> Vec<Figure> {
    let drawn: Vec<&NeighbourMetric> =
        analysis.metrics.iter().filter(|metric| !metric.sets.is_empty()).collect();
    if drawn.is_empty() {
        return Vec::new();
    }
    let select = |id: &str, label: &str, chart: &dyn Fn(&NeighbourMetric) -> Chart| Drawing {
        id: id.into(),
        label: format!("{label}; the table below holds the values."),
        choice: "metric",
        variants: drawn.iter().map(|metric| Variant::chart(metric.name.clone(), chart(metric))).collect(),
        first: 0,
    };
    let mut figures = vec![
        Figure {
            title: "What each VM gets".into(),
            caption: "A bar for each VM, grouped by how many ran together, with fewer virtual processors than the \
                      host has, equally many or more; * no finding, since the host was overloaded. Whiskers are one \
                      standard deviation of its runs: even bars with long whiskers share evenly on average and \
                      unevenly at any moment."
                .into(),
            drawings: vec![select("shares", "Mean and spread of each VM", &|metric| per_vm(metric, analysis))],
            values: Values::Own,
        },
        Figure {
            title: "All VMs together".into(),
            caption: "The sum over the VMs that ran together, with its 95 % interval over repetitions. It stops \
                      rising where what is shared is used up."
                .into(),
            drawings: vec![select("accumulated", "Sum over the VMs", &|metric| sums(metric, analysis))],
            values: Values::Own,
        },
    ];
    figures.extend(over_time(analysis));
    figures
}

fn name_of(analysis: &NeighbourAnalysis, shared: &Shared) -> String {
    match analysis.sets[shared.set].vms {
        1 => "1 VM".into(),
        vms => format!("{vms} VMs"),
    }
}

/// The same beside a bar, with the region of overcommitment ([Multi-VM 2010]'s question).
fn row_name(analysis: &NeighbourAnalysis, shared: &Shared) -> String {
    let set = &analysis.sets[shared.set];
    let name = format!("{}{}", name_of(analysis, shared), set_marks(set.overload, set.loose_start));
    if set.region == Region::Elsewhere { name } else { format!("{name}, {}", set.region.name()) }
}

/// Bars of a metric in a row for each set.
fn bars(metric: &NeighbourMetric, analysis: &NeighbourAnalysis, series: Vec<Series>) -> Chart {
    let names: Vec<String> = metric.sets.iter().map(|shared| row_name(analysis, shared)).collect();
    Chart { series, ..Chart::new(Axis::from_zero(scaled(&metric.unit).1), rows(&names)) }
}

fn per_vm(metric: &NeighbourMetric, analysis: &NeighbourAnalysis) -> Chart {
    let (scale, unit) = scaled(&metric.unit);
    let most = metric.sets.iter().map(|shared| shared.vms.len()).max().unwrap_or(0);
    let series = (0..most).map(|position| {
        let of_vm = metric.sets.iter().enumerate();
        let of_vm = of_vm.filter_map(|(row, shared)| Some((row, shared, shared.vms.get(position)?)));
        let name = of_vm.clone().next().map_or_else(String::new, |(_, _, vm)| vm.vm.clone());
        let points = of_vm.map(|(row, shared, vm)| {
            let mean = vm.mean.mean * scale;
            let spread = vm.stddev.map(|stddev| [mean - stddev * scale, mean + stddev * scale]);
            let hover = format!("{} of {}\n{} {unit}", vm.vm, name_of(analysis, shared), significant(mean));
            Point::new(mean, row as f64).between(spread).hover(hover).label(significant(mean))
        });
        Series { name, look: look(position), form: Form::Bars, points: points.collect() }
    });
    bars(metric, analysis, series.collect())
}

fn sums(metric: &NeighbourMetric, analysis: &NeighbourAnalysis) -> Chart {
    let (scale, unit) = scaled(&metric.unit);
    let points = metric.sets.iter().enumerate().map(|(row, shared)| {
        let sum = shared.accumulated.unwrap_or(shared.mean);
        let value = sum.mean * scale;
        let interval = sum.span().map(|span| ends(span.map(|value| value * scale)));
        let hover = format!("{}\n{} {unit}", name_of(analysis, shared), significant(value));
        Point::new(value, row as f64).between(interval).hover(hover).label(significant(value))
    });
    let sum = Series { name: "sum".into(), look: look(0), form: Form::Bars, points: points.collect() };
    bars(metric, analysis, vec![sum])
}

/// Jain's index interval by interval; nothing where no set has series.
fn over_time(analysis: &NeighbourAnalysis) -> Option<Figure> {
    let mut lines: Vec<Series> = Vec::new();
    for set in analysis.sets.iter().filter(|set| set.vms > 1) {
        let Some(series) = &set.series else { continue };
        let seconds = series.step_ns as f64 / SECOND_NS;
        let name = format!("{} VMs{}", set.vms, set_marks(set.overload, set.loose_start));
        let points = series.rates.iter().enumerate().filter_map(|(index, rates)| {
            let (at, fairness) = ((index as f64 + 0.5) * seconds, jain(rates)?);
            Some(Point::new(at, fairness).hover(format!(
                "{name}\n{} s: {}",
                significant(at),
                significant(fairness)
            )))
        });
        let points = points.collect();
        lines.push(Series { name, look: look(lines.len()), form: Form::Marked, points });
    }
    if lines.is_empty() {
        return None;
    }
    let chart = Chart {
        series: lines,
        ..Chart::new(
            Axis::from_zero("seconds since the start"),
            Axis::from_zero("Jain's index").within(0.0, 1.0),
        )
    };
    let caption = "How evenly the VMs share in each interval of the first whole repetition: 1 is even, one over the \
                   number of VMs is all for one.";
    Some(Figure {
        title: "Fairness over time".into(),
        caption: caption.into(),
        drawings: vec![Drawing::only("fairness", caption.into(), Variant::chart("", chart))],
        values: Values::Own,
    })
}

//! How machines share: bars with their spread, sums, fairness over time ([Multi-VM 2010], Figures 1 to 9).

use plotly::common::{Line, Marker, Mode};
use plotly::layout::{AxisType, BarMode, RangeMode};
use plotly::{Bar, Scatter, Traces};
use virtbench_model::Span;
use virtbench_model::together::{NeighbourAnalysis, NeighbourMetric, Region, Shared, jain};

use super::profile::whiskers;
use super::style::{HOVER, axis, layout, palette};
use super::{Choice, Drawing, Figure, Variant};
use crate::format::{scaled, set_marks, significant};

/// Every figure of which there is anything to draw.
pub(crate) fn shares(analysis: &NeighbourAnalysis) -> Vec<Figure> {
    let drawn: Vec<&NeighbourMetric> =
        analysis.metrics.iter().filter(|metric| !metric.sets.is_empty()).collect();
    if drawn.is_empty() {
        return Vec::new();
    }
    let select = |id: &str, label: &str, variant: &dyn Fn(&NeighbourMetric) -> Variant| Drawing {
        id: id.into(),
        label: format!("{label}; the table below holds the values."),
        choice: Choice::Select("Figure"),
        variants: drawn.iter().map(|metric| variant(metric)).collect(),
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
            key: Vec::new(),
            drawings: vec![select("shares", "Mean and spread of each VM", &|metric| per_vm(metric, analysis))],
        },
        Figure {
            title: "All VMs together".into(),
            caption: "The sum over the VMs that ran together, with its 95 % interval over repetitions. It stops \
                      rising where what is shared is used up."
                .into(),
            key: Vec::new(),
            drawings: vec![select("accumulated", "Sum over the VMs", &|metric| sums(metric, analysis))],
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

/// The same below a bar, with the region of overcommitment ([Multi-VM 2010]'s question).
fn category(analysis: &NeighbourAnalysis, shared: &Shared) -> String {
    let set = &analysis.sets[shared.set];
    let name = format!("{}{}", name_of(analysis, shared), set_marks(set.overload, set.loose_start));
    if set.region == Region::Elsewhere { name } else { format!("{name}<br>{}", set.region.name()) }
}

fn per_vm(metric: &NeighbourMetric, analysis: &NeighbourAnalysis) -> Variant {
    let (scale, unit) = scaled(&metric.unit);
    let most = metric.sets.iter().map(|shared| shared.vms.len()).max().unwrap_or(0);
    let mut traces = Traces::new();
    for position in 0..most {
        let of_vm: Vec<_> =
            metric.sets.iter().filter_map(|shared| Some((shared, shared.vms.get(position)?))).collect();
        let means: Vec<f64> = of_vm.iter().map(|(_, vm)| vm.mean.mean * scale).collect();
        let spans: Vec<Option<Span>> = of_vm
            .iter()
            .zip(&means)
            .map(|((_, vm), mean)| {
                vm.stddev.map(|stddev| Span { low: mean - stddev * scale, high: mean + stddev * scale })
            })
            .collect();
        let hover = of_vm.iter().zip(&means).map(|((shared, vm), mean)| {
            format!("{} of {}<br><b>{} {unit}</b>", vm.vm, name_of(analysis, shared), significant(*mean))
        });
        let names = of_vm.iter().map(|(shared, _)| category(analysis, shared)).collect();
        let vm = of_vm.first().map_or_else(String::new, |(_, vm)| vm.vm.clone());
        traces.push(
            Bar::new(names, means.clone())
                .name(vm)
                .marker(Marker::new().color(palette(position).0))
                .hover_text_array(hover.collect())
                .hover_info(HOVER)
                .error_y(whiskers(&means, &spans)),
        );
    }
    bars(metric, &traces, unit)
}

fn bars(metric: &NeighbourMetric, traces: &Traces, unit: &str) -> Variant {
    let layout = layout()
        .bar_mode(BarMode::Group)
        .x_axis(axis("").type_(AxisType::Category))
        .y_axis(axis(unit).range_mode(RangeMode::ToZero));
    Variant::new(metric.name.clone(), traces, &layout)
}

fn sums(metric: &NeighbourMetric, analysis: &NeighbourAnalysis) -> Variant {
    let (scale, unit) = scaled(&metric.unit);
    let known: Vec<_> =
        metric.sets.iter().map(|shared| (shared, shared.accumulated.unwrap_or(shared.mean))).collect();
    let values: Vec<f64> = known.iter().map(|(_, sum)| sum.mean * scale).collect();
    let spans: Vec<Option<Span>> =
        known.iter().map(|(_, sum)| sum.span().map(|span| span.map(|value| value * scale))).collect();
    let hover = known.iter().zip(&values).map(|((shared, _), value)| {
        format!("{}<br><b>{} {unit}</b>", name_of(analysis, shared), significant(*value))
    });
    let mut traces = Traces::new();
    traces.push(
        Bar::new(known.iter().map(|(shared, _)| category(analysis, shared)).collect(), values.clone())
            .name("sum")
            .marker(Marker::new().color(palette(0).0))
            .hover_text_array(hover.collect())
            .hover_info(HOVER)
            .error_y(whiskers(&values, &spans)),
    );
    bars(metric, &traces, unit)
}

/// Jain's index interval by interval; nothing where no set has series.
fn over_time(analysis: &NeighbourAnalysis) -> Option<Figure> {
    let mut traces = Traces::new();
    let mut drawn = 0;
    for set in analysis.sets.iter().filter(|set| set.vms > 1) {
        let Some(series) = &set.series else { continue };
        let seconds = series.step_ns as f64 / 1e9;
        let (mut times, mut indices) = (Vec::new(), Vec::new());
        for (index, rates) in series.rates.iter().enumerate() {
            if let Some(fairness) = jain(rates) {
                times.push((index as f64 + 0.5) * seconds);
                indices.push(fairness);
            }
        }
        let (colour, _, dash) = palette(drawn);
        drawn += 1;
        traces.push(
            Scatter::new(times, indices)
                .name(format!("{} VMs{}", set.vms, set_marks(set.overload, set.loose_start)))
                .mode(Mode::LinesMarkers)
                .line(Line::new().color(colour).width(2.0).dash(dash))
                .marker(Marker::new().color(colour).size(5)),
        );
    }
    if drawn == 0 {
        return None;
    }
    let layout = layout()
        .x_axis(axis("seconds since the start").range_mode(RangeMode::ToZero))
        .y_axis(axis("Jain's index").range(vec![0.0, 1.05]));
    let caption = "How evenly the VMs share in each interval of the first whole repetition: 1 is even, one over the \
                   number of VMs is all for one.";
    Some(Figure {
        title: "Fairness over time".into(),
        caption: caption.into(),
        key: Vec::new(),
        drawings: vec![Drawing::only("fairness", caption.into(), Variant::new("time", &traces, &layout))],
    })
}

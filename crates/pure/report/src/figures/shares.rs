//! Machines that ran together: how they share, how far they disturb each other, and who disturbs whom.

use virtbench_chart::{Axis, Cell, Chart, Colours, Form, HeatMap, Point, Series, look};
use virtbench_model::together::{
    Deviated, DeviationAnalysis, DisturbedSet, DisturbedVm, NeighbourAnalysis, NeighbourMetric, Region,
    Shared, jain,
};

use super::style::{ends, rows};
use super::{Drawing, Figure, Picture, Values, Variant};
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

type Of = fn(&DisturbedVm) -> Option<Deviated>;

const QUANTITIES: [(&str, Of); 2] = [("throughput", |vm| vm.throughput), ("response time", |vm| vm.response)];

/// A bar for each VM that ran with all others; nothing where there is no deviation.
pub(crate) fn deviations(analysis: &DeviationAnalysis) -> Vec<Figure> {
    let figures = analysis.sets.iter().enumerate().filter_map(|(index, set)| deviation_bars(index, &set.vms));
    figures.collect()
}

fn deviation_bars(index: usize, vms: &[DisturbedVm]) -> Option<Figure> {
    let names: Vec<String> = vms.iter().map(vm_name).collect();
    let series = QUANTITIES.into_iter().enumerate().map(|(index, (quantity, of))| {
        let bar = |(row, vm): (usize, &DisturbedVm)| {
            let deviated = of(vm)?;
            let mean = deviated.delta.mean;
            let hover = format!("{}, {quantity}: {} %", names[row], significant(mean));
            let range = Some([deviated.range.0, deviated.range.1]);
            Some(Point::new(mean, row as f64).between(range).hover(hover).label(significant(mean)))
        };
        let points = vms.iter().enumerate().filter_map(bar).collect();
        Series { name: quantity.into(), look: look(index), form: Form::Bars, points }
    });
    let series: Vec<Series> = series.collect();
    if series.iter().all(|series| series.points.is_empty()) {
        return None;
    }
    let chart = Chart { series, ..Chart::new(Axis::from_zero("deviation, %"), rows(&names)) };
    let caption = "How far each VM beside the others is from itself alone, in percent of that. Bars are means, \
                   whiskers reach from the least to the greatest repetition. Lower is better.";
    let id = format!("deviation-{index}");
    Some(Figure {
        title: "Deviation".into(),
        caption: caption.into(),
        drawings: vec![Drawing::only(&id, caption.into(), Variant::chart("", chart))],
        values: Values::Own,
    })
}

/// A VM and its share.
pub(crate) fn vm_name(vm: &DisturbedVm) -> String {
    vm.share_percent.map_or_else(|| vm.vm.clone(), |share| format!("{} ({} %)", vm.vm, significant(share)))
}

/// Heat maps of who disturbs whom, of throughput and of response time.
pub(crate) fn matrix(matrix: &Matrix<'_>) -> Vec<Figure> {
    QUANTITIES.into_iter().filter_map(|(quantity, of)| heat_map(matrix, quantity, of)).collect()
}

fn heat_map(matrix: &Matrix<'_>, quantity: &str, of: Of) -> Option<Figure> {
    let count = matrix.workloads.len();
    let value = |victim: usize, aggressor: usize| {
        matrix.cell(victim, aggressor).and_then(of).map(|deviated| deviated.delta.mean)
    };
    let all = (0..count).flat_map(|victim| (0..count).filter_map(move |by| value(victim, by)));
    let most = all.reduce(f64::max)?.max(1.0);
    let cell = |victim: usize, aggressor: usize| {
        let value = value(victim, aggressor);
        let mark = if matrix.is_overloaded(victim, aggressor) { " *" } else { "" };
        let shown = value.map_or_else(|| "–".into(), significant);
        let (disturbed, by) = (&matrix.workloads[victim], &matrix.workloads[aggressor]);
        Cell {
            value,
            text: format!("{shown}{mark}"),
            hover: format!("{disturbed} beside {by}: {shown} %{mark}"),
        }
    };
    let names: Vec<String> = (1..=count).map(|number| format!("workload {number}")).collect();
    let map = HeatMap {
        x_title: "beside workload".into(),
        y_title: "disturbed".into(),
        columns: (1..=count).map(|number| number.to_string()).collect(),
        rows: names,
        cells: (0..count).map(|victim| (0..count).map(|by| cell(victim, by)).collect()).collect(),
        colours: Colours::Excess(most),
        scale: vec!["0".into(), format!("{} %", significant(most))],
    };
    let caption = format!(
        "Deviation of {quantity} in percent: of the workload of the row, beside the workload of the column; \
         * no finding, since the host was overloaded."
    );
    let id = format!("matrix-{}", quantity.replace(' ', "-"));
    let variant = Variant { name: String::new(), picture: Picture::Heat(map) };
    Some(Figure {
        title: format!("Who disturbs whom: {quantity}"),
        caption: caption.clone(),
        drawings: vec![Drawing::only(&id, caption, variant)],
        values: Values::Own,
    })
}

/// The pairs of a run, by workload.
#[derive(Debug)]
pub(crate) struct Matrix<'a> {
    /// The workloads, as the command line had them.
    pub(crate) workloads: &'a [String],
    analysis: &'a DeviationAnalysis,
}

impl<'a> Matrix<'a> {
    /// The matrix of a run of pairs; nothing where it is not of several workloads.
    pub(crate) fn new(workloads: &'a [String], analysis: &'a DeviationAnalysis) -> Option<Self> {
        (workloads.len() > 1).then_some(Self { workloads, analysis })
    }

    /// The victim's VM of the pair: the first, where both do the same.
    pub(crate) fn cell(&self, victim: usize, aggressor: usize) -> Option<&'a DisturbedVm> {
        self.pair(victim, aggressor).map(|(_, vm)| vm)
    }

    /// Whether the host's overload falsifies the pair's figures.
    pub(crate) fn is_overloaded(&self, victim: usize, aggressor: usize) -> bool {
        self.pair(victim, aggressor).is_some_and(|(set, _)| set.overload.is_some())
    }

    fn pair(&self, victim: usize, aggressor: usize) -> Option<(&'a DisturbedSet, &'a DisturbedVm)> {
        self.analysis.sets.iter().find_map(|set| match set.vms.as_slice() {
            [first, second] if first.workload == victim && second.workload == aggressor => Some((set, first)),
            [first, second] if first.workload == aggressor && second.workload == victim => {
                Some((set, second))
            }
            _ => None,
        })
    }
}

//! How far VMs disturb each other: bars ([VirtualFence 2013], Figure 1), and who disturbs whom.

use virtbench_chart::{Axis, Cell, Chart, Colours, Form, HeatMap, Point, Series, look};
use virtbench_model::together::{Deviated, DeviationAnalysis, DisturbedVm};

use super::style::rows;
use super::{Drawing, Figure, Picture, Values, Variant};
use crate::format::significant;
use crate::matrix::Matrix;

type Of = fn(&DisturbedVm) -> Option<Deviated>;
const QUANTITIES: [(&str, Of); 2] = [("throughput", |vm| vm.throughput), ("response time", |vm| vm.response)];

/// A bar for each VM that ran with all others; nothing where there is no deviation.
pub(crate) fn deviations(analysis: &DeviationAnalysis) -> Vec<Figure> {
    let figures = analysis.sets.iter().enumerate().filter_map(|(index, set)| bars(index, &set.vms));
    figures.collect()
}

fn bars(index: usize, vms: &[DisturbedVm]) -> Option<Figure> {
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

//! Tables of machines that ran together.

use maud::{Markup, html};
use virtbench_model::together::{
    Deviated, DeviationAnalysis, DisturbedSet, DisturbedVm, NeighbourAnalysis, NeighbourMetric, Shared,
};
use virtbench_record::MachineNumbers;

use super::{Cell, header};
use crate::figures::vm_name;
use crate::format::{MILLISECOND_NS, scaled, set_marks};
use crate::matrix::Matrix;

/// A table for each figure: means, spread, sums, fairness ([Multi-VM 2010], Table 1).
pub(crate) fn neighbours(analysis: &NeighbourAnalysis) -> Markup {
    html! {
        @for metric in analysis.metrics.iter().filter(|metric| !metric.sets.is_empty()) {
            h3 { (metric.name) }
            (neighbour_table(analysis, metric))
        }
    }
}

fn neighbour_table(analysis: &NeighbourAnalysis, metric: &NeighbourMetric) -> Markup {
    let (scale, unit) = scaled(&metric.unit);
    html! {
        div.scroll tabindex="0" role="region" aria-label=(format!("{} by number of VMs", metric.name)) {
            table {
                thead { tr {
                    (header("VMs", "", None)) (header("virtual processors", "than the host's", None))
                    (header("mean of a VM", unit, None)) (header("sd between VMs", "%", None))
                    (header("sum", unit, None)) (header("sum against one VM", "", None))
                    (header("Jain's index", "", None)) (header("worst to best", "", None))
                    (header("Jain's index over time", "mean", None)) (header("least fair interval", "", None))
                    (header("host CPU", "%", None)) (header("stolen from guests", "%", None))
                } }
                tbody { @for shared in &metric.sets { (neighbour_row(analysis, shared, scale)) } }
            }
        }
    }
}

fn neighbour_row(analysis: &NeighbourAnalysis, shared: &Shared, scale: f64) -> Markup {
    let set = &analysis.sets[shared.set];
    html! {
        tr {
            td.number { (set.vms) }
            td { (set.region.name()) (set_marks(set.overload, set.loose_start)) }
            (Cell::estimate(Some(shared.mean), 1.0 / scale).markup())
            (Cell::number(shared.stddev_percent()).markup())
            (Cell::estimate(shared.accumulated, 1.0 / scale).markup())
            (Cell::ratio(shared.against_one).markup())
            (Cell::estimate(shared.jain, 1.0).markup())
            (Cell::estimate(shared.worst_to_best, 1.0).markup())
            (Cell::estimate(set.interval_fairness, 1.0).markup())
            (Cell::number(set.worst_interval).markup())
            (Cell::number(set.host_cpu_percent).markup())
            (Cell::number(set.guest_steal_percent).markup())
        }
    }
}

/// Each VM alone and beside the others.
pub(crate) fn deviations(analysis: &DeviationAnalysis) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Each VM alone and beside the others" {
            table {
                thead { tr {
                    (header("together", "", None)) (header("VM", "", None)) (header("workload", "", None))
                    (header("throughput alone", "/s", None)) (header("beside", "/s", None)) (header("deviation", "%", None))
                    (header("response alone", "ms", None)) (header("beside", "ms", None)) (header("deviation", "%", None))
                    (header("p99 alone", "ms", None)) (header("beside", "ms", None))
                } }
                tbody { @for set in &analysis.sets { @for vm in &set.vms { (deviation_row(set, vm)) } } }
            }
        }
    }
}

fn deviation_row(set: &DisturbedSet, vm: &DisturbedVm) -> Markup {
    let cells = |deviated: Option<Deviated>, unit: f64| {
        html! {
            (Cell::estimate(deviated.map(|one| one.alone), unit).markup())
            (Cell::estimate(deviated.map(|one| one.beside), unit).markup())
            (Cell::estimate(deviated.map(|one| one.delta), 1.0).markup())
        }
    };
    html! {
        tr {
            td { (set.name) (set_marks(set.overload, set.loose_start)) } td { (vm_name(vm)) } td { (vm.workload + 1) }
            (cells(vm.throughput, 1.0))
            (cells(vm.response, MILLISECOND_NS))
            @for p99 in vm.p99_ns { (Cell::number(p99.map(|ns| ns / MILLISECOND_NS)).markup()) }
        }
    }
}

/// Where each machine lives, how well it began with the others, and what its host did.
pub(crate) fn machines(machines: &[MachineNumbers]) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Machines and their hosts" {
            table {
                thead { tr {
                    (header("machine", "", None)) (header("lives in", "", None)) (header("measured", "", None))
                    (header("began late by", "ms, at most", None)) (header("clock offset known to", "ms", None))
                    (header("clock drift", "ppm, at most", None)) (header("clock jumped by", "ms", None))
                    (header("its host's CPU", "%", None)) (header("stolen from it", "%", None))
                    (header("other programs there", "%", None))
                } }
                tbody { @for machine in machines { (machine_row(machine)) } }
            }
        }
    }
}

fn machine_row(machine: &MachineNumbers) -> Markup {
    let measured = match machine.without_figures {
        0 => machine.measured.to_string(),
        lost => format!("{} of {}", machine.measured, machine.measured + lost),
    };
    let ms = |ns: Option<f64>| Cell::number(ns.map(|ns| ns / MILLISECOND_NS)).markup();
    html! {
        tr {
            td { (machine.vm) } td { (machine.environment) } td.number { (measured) }
            (ms(machine.late_ns.map(|ns| ns as f64))) (ms(machine.offset_uncertainty_ns.map(|ns| ns as f64)))
            (Cell::number(machine.drift_ppm).markup())
            (ms(machine.clock_jump_ns.map(|ns| ns as f64)))
            (Cell::number(machine.cpu_percent).markup()) (Cell::number(machine.steal_percent).markup())
            (Cell::number(machine.others_percent).markup())
        }
    }
}

/// What the numbers of the matrix stand for.
pub(crate) fn workloads(matrix: &Matrix<'_>) -> Markup {
    html! { ol { @for workload in matrix.workloads { li { code { (workload) } } } } }
}

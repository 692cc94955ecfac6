//! What is printed of a run of several VMs.

use std::io::{self, Write};
use std::path::Path;

use virtbench_model::Estimate;
use virtbench_model::together::{
    Deviated, DeviationAnalysis, NeighbourAnalysis, NeighbourMetric, analyse_deviation, analyse_neighbours,
    machine_numbers,
};
use virtbench_record::{MachineNumbers, Plan};
use virtbench_report::{set_marks, takeaway};

use crate::commands::report;
use crate::exit::{Failure, Kind, Outcome};
use crate::text_table::{TextTable, left, right};

/// Writes the report of a folder and prints what it comes to. Machines that failed are an exit code of
/// their own: the figures of the others stay.
pub fn show(dir: &Path, json: bool) -> Outcome {
    let report::Written { run, files, .. } = report::write(dir)?;
    let (provenance, records) = (&run.provenance, run.records.sets());
    let conclusion = super::conclusion(dir, &files, &takeaway(provenance, &run.records));
    let plan = provenance.plan.colocation();
    let homes = plan.map_or_else(Vec::new, |plan| machine_numbers(plan, records));
    super::print(json, &conclusion, &run, |out| match &provenance.plan {
        Plan::Neighbours(_) => {
            neighbours(out, &analyse_neighbours(provenance, records))?;
            machines(out, &homes)
        }
        Plan::Deviation(plan) => {
            for (number, workload) in (1..).zip(&plan.workloads).filter(|_| plan.workloads.len() > 1) {
                writeln!(out, "workload{number}: {workload}")?;
            }
            deviation(out, &analyse_deviation(provenance, records))?;
            machines(out, &homes)
        }
        Plan::Network(_)
        | Plan::Platform(_)
        | Plan::NativeVsVm(_)
        | Plan::Adapters(_)
        | Plan::Compare(_)
        | Plan::Predictions(_)
        | Plan::Oltp(_)
        | Plan::Operations(_)
        | Plan::Application(_)
        | Plan::Desktops(_)
        | Plan::Tiles(_) => Ok(()),
    })?;
    let members = records.iter().flat_map(|record| &record.members);
    let failed = members.filter(|member| member.measured().is_none()).count();
    if failed > 0 {
        let message = format!("{failed} VMs failed or could not start; the figures of the others are kept");
        return Err(Failure::message(Kind::Measured, message));
    }
    Ok(())
}

/// Where each machine lives, and how well it began with the others.
fn machines(out: &mut dyn Write, machines: &[MachineNumbers]) -> io::Result<()> {
    if machines.is_empty() {
        return Ok(());
    }
    let mut table =
        TextTable::new(0, &[right(6), left(0), right(0), right(11), right(0), right(0), right(0), right(0)]);
    table.row(["VM", "lives in", "measured", "late ms", "clock ± ms", "drift ppm", "jumped ms", "its CPU %"]);
    for one in machines {
        let ms = |ns: Option<f64>, digits| number(ns.map(|ns| ns / 1e6), digits);
        table.row([
            one.vm.clone(),
            one.environment.clone(),
            one.measured.to_string(),
            ms(one.late_ns.map(|ns| ns as f64), 2),
            ms(one.offset_uncertainty_ns.map(|ns| ns as f64), 3),
            number(one.drift_ppm, 0),
            ms(one.clock_jump_ns.map(|ns| ns as f64), 1),
            number(one.cpu_percent, 0),
        ]);
    }
    writeln!(out, "{table}\n")
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

/// A table as the first figure of [VirtualFence 2013].
fn deviation(out: &mut dyn Write, analysis: &DeviationAnalysis) -> io::Result<()> {
    let mean = |estimate: Option<Estimate>, unit: f64| number(estimate.map(|one| one.mean / unit), 1);
    for set in &analysis.sets {
        writeln!(out, "{}{}", set.name, set_marks(set.overload, set.loose_start))?;
        writeln!(
            out,
            "{:>6} {:>7} {:>12} {:>12} {:>8} {:>12} {:>12} {:>8}",
            "VM", "share %", "alone /s", "beside /s", "delta %", "alone ms", "beside ms", "delta %"
        )?;
        for vm in &set.vms {
            let cells = |one: Option<Deviated>, unit: f64| {
                let delta = mean(one.map(|one| one.delta), 1.0);
                [mean(one.map(|one| one.alone), unit), mean(one.map(|one| one.beside), unit), delta]
            };
            let ([a, b, c], [d, e, f]) = (cells(vm.throughput, 1.0), cells(vm.response, 1e6));
            let share = number(vm.share_percent, 1);
            writeln!(out, "{:>6} {share:>7} {a:>12} {b:>12} {c:>8} {d:>12} {e:>12} {f:>8}", vm.vm)?;
        }
        let (throughput, response) = (mean(set.expected_throughput, 1.0), mean(set.expected_response, 1.0));
        writeln!(
            out,
            "{:>6} {:>7} {:>12} {:>12} {throughput:>8} {:>12} {:>12} {response:>8}\n",
            "E", "", "", "", "", ""
        )?;
    }
    Ok(())
}

/// Tables as the first of [Multi-VM 2010]: of what stands for the whole, of the others on the page.
fn neighbours(out: &mut dyn Write, analysis: &NeighbourAnalysis) -> io::Result<()> {
    let lead: Option<&NeighbourMetric> = analysis.metrics.first();
    for metric in lead.iter() {
        let (scale, unit) = match metric.unit.as_str() {
            "B/s" => (1e-6, "MB/s"),
            unit => (1.0, unit),
        };
        writeln!(
            out,
            "{} in {unit}; {} more figures are in the report",
            metric.name,
            analysis.metrics.len() - 1
        )?;
        writeln!(
            out,
            "{:>5} {:>6} {:>12} {:>10} {:>12} {:>8} {:>7} {:>8} {:>9} {:>9}",
            "VMs", "vCPUs", "mean", "sd", "accumulated", "x one", "Jain", "worst", "steal %", "host CPU"
        )?;
        for shared in &metric.sets {
            let set = &analysis.sets[shared.set];
            writeln!(
                out,
                "{:>5} {:>6} {:>12} {:>10} {:>12} {:>8} {:>7} {:>8} {:>9} {:>9}{}",
                set.vms,
                set.region.name(),
                number(Some(shared.mean.mean * scale), 1),
                number(shared.stddev.map(|stddev| stddev * scale), 1),
                number(shared.accumulated.map(|sum| sum.mean * scale), 1),
                number(shared.against_one.map(|ratio| ratio.value), 2),
                number(shared.jain.map(|jain| jain.mean), 3),
                number(shared.worst_to_best.map(|ratio| ratio.mean), 3),
                number(set.guest_steal_percent, 1),
                number(set.host_cpu_percent, 0),
                set_marks(set.overload, set.loose_start)
            )?;
        }
        writeln!(out)?;
    }
    Ok(())
}

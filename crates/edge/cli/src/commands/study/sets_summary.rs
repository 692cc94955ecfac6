//! What is printed of a run of several VMs.

use std::io::{self, Write};
use std::path::Path;

use virtbench_model::together::{NeighbourAnalysis, analyse_neighbours};
use virtbench_record::SetRecord;
use virtbench_study::{LoadedRun, load_run};

use crate::exit::{Failure, Kind, Outcome};

/// Reads a folder and prints what it comes to.
pub fn show(dir: &Path, _json: bool) -> Outcome {
    let run: LoadedRun<SetRecord> = load_run(dir).map_err(|error| Failure::new(Kind::Folder, error))?;
    let analysis = analyse_neighbours(&run.provenance, &run.records);
    let mut out = io::stdout().lock();
    neighbours(&mut out, &analysis)?;
    writeln!(out, "\nrun folder: {}", dir.display())?;
    Ok(())
}

/// A table as paper 4's first.
fn neighbours(out: &mut impl Write, analysis: &NeighbourAnalysis) -> io::Result<()> {
    for metric in &analysis.metrics {
        let (scale, unit) = match metric.unit.as_str() {
            "B/s" => (1e-6, "MB/s"),
            unit => (1.0, unit),
        };
        writeln!(out, "{} in {unit}", metric.name)?;
        writeln!(
            out,
            "{:>5} {:>6} {:>12} {:>10} {:>12} {:>8} {:>7} {:>8} {:>8}",
            "VMs", "vCPUs", "mean", "sd", "accumulated", "x one", "Jain", "worst", "host CPU"
        )?;
        for shared in &metric.sets {
            let set = &analysis.sets[shared.set];
            let number = |value: Option<f64>, digits: usize| {
                value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
            };
            writeln!(
                out,
                "{:>5} {:>6} {:>12} {:>10} {:>12} {:>8} {:>7} {:>8} {:>8}{}",
                set.vms,
                set.region.name(),
                number(Some(shared.mean.mean * scale), 1),
                number(shared.stddev.map(|stddev| stddev * scale), 1),
                number(shared.accumulated.map(|sum| sum.mean * scale), 1),
                number(shared.against_one.map(|ratio| ratio.value), 2),
                number(shared.jain.map(|jain| jain.mean), 3),
                number(shared.worst_to_best.map(|ratio| ratio.mean), 3),
                number(set.host_cpu_percent, 0),
                if set.bound_by_emulation { "  *" } else { "" }
            )?;
        }
        writeln!(out)?;
    }
    if analysis.sets.iter().any(|set| set.bound_by_emulation) {
        writeln!(out, "* the host had no processor time left for emulating its guests: this shows how emulators")?;
        writeln!(out, "  share processors, not how VMs share what the workload is about")?;
    }
    Ok(())
}

//! `virtbench costs`: what pieces of work cost natively and in a VM.

use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use virtbench_record::{Cost, Costs, LeftOut, Reference};
use virtbench_study::{MAX_COSTS_BYTES, NativeSide, measure_costs, parse_costs};

use crate::applications::with_progress;
use crate::args::costs::CostsArgs;
use crate::commands::profile::read_bytes;
use crate::exit::{Failure, Kind, Outcome};

/// Measures and shows them.
pub fn execute(args: &CostsArgs) -> Outcome {
    let options = args.there.options(args.vcpus, args.there.folder()?)?;
    let costs = with_progress(|progress| {
        let native = NativeSide::new(&options, progress)?;
        measure_costs(&options, &native, progress)
    })?;
    if let Some(path) = &args.out {
        write(path, &costs)?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        virtbench_formats::json::write(&mut out, &costs)?;
        writeln!(out)?;
    } else {
        table(&mut out, &costs)?;
    }
    Ok(())
}

/// Writes them as JSON, the whole file or none.
fn write(path: &Path, costs: &Costs) -> Outcome {
    let written = || -> anyhow::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(Path::new(".")))?;
        virtbench_formats::json::write_pretty(&mut file, costs)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    Ok(written().with_context(|| format!("cannot write {}", path.display()))?)
}

/// Reads what `virtbench costs --out` has written.
pub fn read(path: &Path) -> Result<Costs, Failure> {
    let bytes = read_bytes(path, MAX_COSTS_BYTES)?;
    parse_costs(&bytes).map_err(|why| Failure::message(Kind::Usage, format!("{}: {why}", path.display())))
}

fn table(out: &mut impl Write, costs: &Costs) -> io::Result<()> {
    writeln!(out, "{:<14}{:<8}{:>14}{:>14}{:>9}", "", "part", "native, ns", "vm, ns", "factor")?;
    for Cost { name, part, reference_ns, subject_ns } in &costs.costs {
        let part = format!("{part:?}").to_lowercase();
        let factor = subject_ns / reference_ns;
        writeln!(out, "{name:<14}{part:<8}{reference_ns:>14.2}{subject_ns:>14.2}{factor:>9.2}")?;
    }
    if !costs.crowded.is_empty() {
        writeln!(out, "\n{:<36}{:>14}{:>14}", "slower with every processor busy", "native", "vm")?;
    }
    for (name, [native, vm]) in costs.slowdowns() {
        writeln!(out, "{name:<36}{native:>14.2}{vm:>14.2}")?;
    }
    references_table(out, &costs.references)?;
    for LeftOut { name, why } in &costs.left_out {
        writeln!(out, "not measured: {name}: {why}")?;
    }
    writeln!(out, "{}, {} vCPUs, {}", costs.accelerator, costs.vcpus, costs.adapter)
}

/// Reference applications: how often a second, and what user code and kernel code of one take longer in the VM.
fn references_table(out: &mut impl Write, references: &[Reference]) -> io::Result<()> {
    if references.is_empty() {
        return Ok(());
    }
    writeln!(
        out,
        "\n{:<14}{:>8}{:>14}{:>14}{:>9}{:>9}{:>9}{:>9}",
        "reference", "workers", "native, /s", "vm, /s", "factor", "user", "kernel", "sampled"
    )?;
    for Reference { name, workers, reference, subject } in references {
        let factor = |mode: usize| {
            let both = subject.cpu_s(mode).zip(reference.cpu_s(mode));
            both.map_or_else(
                || "-".to_owned(),
                |(subject_s, reference_s)| format!("{:.2}", subject_s / reference_s),
            )
        };
        writeln!(
            out,
            "{name:<14}{workers:>8}{:>14.1}{:>14.1}{:>9.2}{:>9}{:>9}{:>9}",
            reference.per_second,
            subject.per_second,
            reference.per_second / subject.per_second,
            factor(0),
            factor(1),
            if reference.footprint.functions.is_empty() { "no" } else { "yes" }
        )?;
    }
    Ok(())
}

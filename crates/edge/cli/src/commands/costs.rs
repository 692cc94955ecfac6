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
use crate::say::print_json;
use crate::text_table::{TextTable, left, right};

/// Measures and shows them.
pub fn execute(args: &CostsArgs) -> Outcome {
    let options = args.vm.options(args.vcpus, args.vm.folder()?)?;
    let costs = with_progress(|progress| {
        let native = NativeSide::new(&options, progress)?;
        measure_costs(&options, &native, progress)
    })?;
    if let Some(path) = &args.out {
        write(path, &costs)?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        print_json(&costs)?;
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
    let mut table = TextTable::new(0, &[left(14), left(8), right(14), right(14), right(9)]);
    table.row(["", "part", "native, ns", "vm, ns", "factor"]);
    for Cost { name, part, reference_ns, subject_ns } in &costs.costs {
        let part = format!("{part:?}").to_lowercase();
        let [reference, subject, factor] =
            [*reference_ns, *subject_ns, subject_ns / reference_ns].map(|value| format!("{value:.2}"));
        table.row([name.clone(), part, reference, subject, factor]);
    }
    writeln!(out, "{table}")?;
    if !costs.crowded.is_empty() {
        let mut table = TextTable::new(0, &[left(36), right(14), right(14)]);
        table.row(["slower with every processor busy", "native", "vm"]);
        for (name, [native, vm]) in costs.slowdowns() {
            table.row([name.to_owned(), format!("{native:.2}"), format!("{vm:.2}")]);
        }
        writeln!(out, "\n{table}")?;
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
    let widths = [left(14), right(8), right(14), right(14), right(9), right(9), right(9), right(9)];
    let mut table = TextTable::new(0, &widths);
    table.row(["reference", "workers", "native, /s", "vm, /s", "factor", "user", "kernel", "sampled"]);
    for Reference { name, workers, reference, subject } in references {
        let factor = |mode: usize| {
            let both = subject.cpu_s(mode).zip(reference.cpu_s(mode));
            both.map_or_else(
                || "-".to_owned(),
                |(subject_s, reference_s)| format!("{:.2}", subject_s / reference_s),
            )
        };
        let sampled = if reference.footprint.functions.is_empty() { "no" } else { "yes" };
        table.row([
            name.clone(),
            workers.to_string(),
            format!("{:.1}", reference.per_second),
            format!("{:.1}", subject.per_second),
            format!("{:.2}", reference.per_second / subject.per_second),
            factor(0),
            factor(1),
            sampled.to_owned(),
        ]);
    }
    writeln!(out, "\n{table}")
}

//! `virtbench costs`: what pieces of work cost natively and in a VM.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use anyhow::Context;
use virtbench_lab::host_facts;
use virtbench_record::{COSTS_FORMAT, Cost, CostPart, Costs, Reference, WorkloadOutcome};
use virtbench_workload::{CpuKernel, SystemKernel, SystemPart, WorkloadSpec, parse_workload};

use crate::args::costs::CostsArgs;
use crate::args::there::ThereArgs;
use crate::commands::profile::read_bytes;
use crate::commands::references;
use crate::exit::{Failure, Kind, Outcome};
use crate::middle::middle;
use crate::native_place::NativeSide;
use crate::there::There;

/// The two suites. Kernels run for so long that those of a slow guest are repeated often enough.
const SUITES: [&str; 2] = ["cpu:threads=1,kernel=200ms,runs=1", "system:kernel=300ms,runs=1"];
/// How often each suite is run; of each piece the time in the middle counts, as a machine may be slow for a moment.
const ROUNDS: usize = 3;
/// How long a computation takes where every processor of the VM has one.
const CROWDED: &str = "200ms";
/// Bytes of a copying piece.
const COPY_BYTES: f64 = 65_536.0;
/// Less than this is no wait, but the grain of the kernel's accounts.
const LEAST_WAIT_NS: f64 = 1_000.0;
/// The largest file of costs, in bytes.
const MOST_BYTES: usize = 8 << 20;

/// Measures and shows them.
pub fn execute(args: &CostsArgs) -> Outcome {
    let costs = measure(&args.there, &NativeSide::new(&args.there)?, args.vcpus)?;
    if let Some(path) = &args.out {
        write(path, &costs)?;
    }
    let mut out = io::stdout().lock();
    if args.json {
        serde_json::to_writer(&mut out, &costs)?;
        writeln!(out)?;
    } else {
        table(&mut out, &costs)?;
    }
    Ok(())
}

/// Writes them as JSON.
pub fn write(path: &Path, costs: &Costs) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(costs)? + "\n";
    Ok(fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?)
}

/// Reads what [`write()`] has written.
pub fn read(path: &Path) -> Result<Costs, Failure> {
    let wrong = |why: String| Failure::message(Kind::Usage, format!("{}: {why}", path.display()));
    let bytes = read_bytes(path, MOST_BYTES)?;
    let costs: Costs = serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    costs.check().map_err(|error| wrong(error.to_string()))?;
    Ok(costs)
}

/// Runs both suites natively and in a VM.
pub fn measure(there: &ThereArgs, native: &NativeSide, vcpus: u32) -> Result<Costs, Failure> {
    let place = native.place()?;
    let mut machine = There::native(place.folder().to_owned())?;
    let reference = suites(&mut machine)?;
    let reference_crowded = crowd(&mut machine, vcpus)?;
    machine.end();
    let host = host_facts(place.folder());
    drop(place);
    let mut vm = There::boot(there, vcpus, &[], None)?;
    let accelerator = vm.accelerator().unwrap_or_default();
    let subject = suites(&mut vm);
    let subject_crowded = crowd(&mut vm, vcpus);
    vm.end();
    let costs = Costs {
        costs_format: COSTS_FORMAT,
        host,
        adapter: there.adapter.clone(),
        accelerator,
        vcpus,
        costs: pieces(&reference, &subject?),
        crowded: user(&[reference_crowded], &[subject_crowded?], f64::from(vcpus)),
        references: references::measure(there, native, vcpus)?,
    };
    costs.check().map_err(|error| Failure::new(Kind::Measured, error))?;
    Ok(costs)
}

/// What came of both suites in each round.
type Suites = [Vec<WorkloadOutcome>; 2];

fn suites(machine: &mut There) -> Result<Suites, Failure> {
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (outcomes, text) in all.iter_mut().zip(SUITES) {
            let spec = parse_workload(text).map_err(|error| Failure::new(Kind::Other, error))?;
            outcomes.push(machine.run(spec)?.outcome);
        }
    }
    Ok(all)
}

/// A figure of a suite, that of the round in the middle.
fn figure(outcomes: &[WorkloadOutcome], of: impl Fn(&WorkloadOutcome) -> Option<f64>) -> Option<f64> {
    middle(outcomes.iter().filter_map(of).collect(), |value| *value)
}

/// The computations in so many threads.
fn crowd(machine: &mut There, threads: u32) -> Result<WorkloadOutcome, Failure> {
    let text = format!("cpu:threads={threads},kernel={CROWDED},runs=1");
    let spec: WorkloadSpec = parse_workload(&text).map_err(|error| Failure::new(Kind::Other, error))?;
    Ok(machine.run(spec)?.outcome)
}

/// Times of the computations, those of one thread of so many.
fn user(reference: &[WorkloadOutcome], subject: &[WorkloadOutcome], threads: f64) -> Vec<Cost> {
    let time = |outcomes: &[WorkloadOutcome], name: &str| {
        figure(outcomes, |outcome| Some(threads * 60e9 / outcome.metric(name)?.mean))
    };
    let cost = |kernel: CpuKernel| {
        let name = kernel.name();
        let (reference_ns, subject_ns) = (time(reference, name)?, time(subject, name)?);
        Some(Cost { name: name.to_owned(), part: CostPart::User, reference_ns, subject_ns })
    };
    CpuKernel::ALL.into_iter().filter_map(cost).collect()
}

/// Piece by piece the times on both sides; one that a side did not finish is left out.
fn pieces(reference: &Suites, subject: &Suites) -> Vec<Cost> {
    let mean = |outcome: &WorkloadOutcome, name: &str| outcome.metric(name).map(|metric| metric.mean);
    let both = |suite: usize, time: &dyn Fn(&WorkloadOutcome) -> Option<f64>| {
        figure(&reference[suite], time).zip(figure(&subject[suite], time))
    };
    let cost = |name: &str, part, times: Option<(f64, f64)>| {
        times.map(|(reference_ns, subject_ns)| Cost { name: name.to_owned(), part, reference_ns, subject_ns })
    };
    let user = user(&reference[0], &subject[0], 1.0).into_iter();
    let system = SystemKernel::ALL.into_iter().filter_map(|kernel| {
        let name = kernel.name();
        let cpu = format!("{name} cpu");
        match kernel.part() {
            SystemPart::Code => cost(name, CostPart::System, both(1, &|outcome| mean(outcome, name))),
            SystemPart::Copy => {
                cost(name, CostPart::Copy, both(1, &|outcome| mean(outcome, name).map(|ns| ns / COPY_BYTES)))
            }
            SystemPart::Wait => {
                let waited = |outcome: &WorkloadOutcome| {
                    Some((mean(outcome, name)? - mean(outcome, &cpu)?).max(LEAST_WAIT_NS))
                };
                cost(name, CostPart::Wait, both(1, &waited))
            }
        }
    });
    // What the kernel does for a flushed write, its own threads included, is kernel code like any other.
    let flushed = SystemKernel::ALL.into_iter().filter(|kernel| kernel.part() == SystemPart::Wait);
    let code = flushed.filter_map(|kernel| {
        let name = format!("{} cpu", kernel.name());
        cost(&name, CostPart::System, both(1, &|outcome| mean(outcome, &name)))
    });
    user.chain(system).chain(code).collect()
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

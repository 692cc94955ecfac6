//! What pieces of work cost natively and in a VM, with reference applications.

use virtbench_lab::host_facts;
use virtbench_record::{COSTS_FORMAT, Cost, CostPart, Costs, LeftOut, WorkloadOutcome};
use virtbench_workload::{CpuKernel, SystemKernel, SystemPart, WorkloadSpec, parse_workload};

use super::error::ApplicationsError;
use super::machine::{WorkloadMachine, find_guests};
use super::middle::middle;
use super::native_folder::NativeSide;
use super::options::VmOptions;
use super::references;
use crate::runner::progress::Progress;

/// The two suites. Kernels run for so long that those of a slow guest are repeated often enough.
const SUITES: [&str; 2] = ["cpu:threads=1,kernel=200ms,runs=1", "system:kernel=300ms,runs=1"];
/// How long a piece of the second one is repeated, in nanoseconds.
const SYSTEM_NS: f64 = 300e6;
/// The kernel counts the time of its own threads in ticks of so many nanoseconds (`CLK_TCK`, proc(5)).
const TICK_NS: f64 = 10e6;
/// How often each suite is run; of each piece the time in the middle counts, as a machine may be slow for a moment.
const ROUNDS: usize = 3;
/// How long a computation takes where every processor of the VM has one.
const CROWDED: &str = "200ms";
/// Bytes of a copying piece.
const COPY_BYTES: f64 = 65_536.0;
/// The largest file of costs, in bytes.
pub const MAX_COSTS_BYTES: usize = 8 << 20;

/// Reads costs that were written as JSON.
///
/// # Errors
/// They are no costs, or cannot be; in words.
pub fn parse_costs(bytes: &[u8]) -> Result<Costs, String> {
    let costs: Costs = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    costs.check().map_err(|error| error.to_string())?;
    Ok(costs)
}

/// Runs both suites and the reference applications natively and in a VM.
///
/// # Errors
/// A machine fails, what was measured cannot be, or it was to stop: there are no costs then.
pub fn measure_costs(
    options: &VmOptions,
    native: &NativeSide,
    progress: &mut Progress<'_>,
) -> Result<Costs, ApplicationsError> {
    let vcpus = options.guest.vcpus;
    // What the VM lacks is said before the native side is measured.
    find_guests(options, &[], progress)?;
    progress.doing("pieces of work natively");
    let place = native.place()?;
    let mut machine = WorkloadMachine::native(place.folder().to_owned())?;
    let reference = suites(&mut machine, progress)?;
    let reference_crowded = crowd(&mut machine, vcpus, progress)?;
    machine.end();
    let host = host_facts(place.folder());
    drop(place);
    progress.doing("pieces of work in the VM");
    let mut vm = WorkloadMachine::boot(options, &[], None, progress)?;
    let accelerator = vm.guest().map(|guest| guest.accelerator.name).unwrap_or_default();
    let subject = suites(&mut vm, progress)?;
    let subject_crowded = crowd(&mut vm, vcpus, progress)?;
    vm.end();
    let (costs, left_out) = pieces(&reference, &subject);
    for LeftOut { name, why } in &left_out {
        progress.remark(&format!("{name} is not measured: {why}"));
    }
    let mut costs = Costs {
        costs_format: COSTS_FORMAT,
        host,
        adapter: options.adapter.clone(),
        accelerator,
        vcpus,
        costs,
        crowded: user(&[reference_crowded], &[subject_crowded], f64::from(vcpus)),
        references: Vec::new(),
        left_out,
    };
    let check = |costs: &Costs| costs.check().map_err(|error| ApplicationsError::Measured(error.into()));
    // Before minutes are spent on references.
    check(&costs)?;
    let measured = references::measure_references(options, native, progress)?;
    costs.references = measured.references;
    costs.left_out.extend(measured.left_out);
    check(&costs)?;
    Ok(costs)
}

/// What came of both suites in each round.
type Suites = [Vec<WorkloadOutcome>; 2];

fn suites(machine: &mut WorkloadMachine, progress: &Progress<'_>) -> Result<Suites, ApplicationsError> {
    let mut all = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (outcomes, text) in all.iter_mut().zip(SUITES) {
            let spec = parse_workload(text).map_err(|error| ApplicationsError::Input(error.into()))?;
            outcomes.push(machine.run(spec, progress)?.0);
        }
    }
    Ok(all)
}

/// A figure of a suite, that of the round in the middle.
fn figure(outcomes: &[WorkloadOutcome], of: impl Fn(&WorkloadOutcome) -> Option<f64>) -> Option<f64> {
    middle(outcomes.iter().filter_map(of).collect(), |value| *value)
}

/// The computations in so many threads.
fn crowd(
    machine: &mut WorkloadMachine,
    threads: u32,
    progress: &Progress<'_>,
) -> Result<WorkloadOutcome, ApplicationsError> {
    let text = format!("cpu:threads={threads},kernel={CROWDED},runs=1");
    let spec: WorkloadSpec = parse_workload(&text).map_err(|error| ApplicationsError::Input(error.into()))?;
    Ok(machine.run(spec, progress)?.0)
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

/// A piece of work, with its times natively and in the VM if both are known, in nanoseconds.
struct Piece {
    name: String,
    part: CostPart,
    times: Option<(f64, f64)>,
}

/// Piece by piece the times on both sides; and those that a side did not finish, or that are too short to be told.
fn pieces(reference: &Suites, subject: &Suites) -> (Vec<Cost>, Vec<LeftOut>) {
    let mean = |outcome: &WorkloadOutcome, name: &str| outcome.metric(name).map(|metric| metric.mean);
    let both = |time: &dyn Fn(&WorkloadOutcome) -> Option<f64>| {
        figure(&reference[1], time).zip(figure(&subject[1], time))
    };
    let mut all: Vec<Piece> = Vec::new();
    for kernel in SystemKernel::ALL {
        let name = kernel.name();
        let (part, times) = match kernel.part() {
            SystemPart::Code => (CostPart::System, both(&|outcome| mean(outcome, name))),
            SystemPart::Copy => {
                (CostPart::Copy, both(&|outcome| mean(outcome, name).map(|ns| ns / COPY_BYTES)))
            }
            SystemPart::Wait => {
                let waited = |outcomes: &[WorkloadOutcome]| {
                    let all = outcomes.iter().map(|outcome| waited_ns(outcome, name));
                    middle_wait(&all.collect::<Vec<_>>())
                };
                (CostPart::Wait, waited(&reference[1]).zip(waited(&subject[1])))
            }
        };
        all.push(Piece { name: name.to_owned(), part, times });
    }
    // What the kernel does for a flushed write, its own threads included, is kernel code like any other.
    for kernel in SystemKernel::ALL.into_iter().filter(|kernel| kernel.part() == SystemPart::Wait) {
        let name = format!("{} cpu", kernel.name());
        let times = both(&|outcome| mean(outcome, &name));
        all.push(Piece { name, part: CostPart::System, times });
    }
    let mut costs = user(&reference[0], &subject[0], 1.0);
    let mut left_out = Vec::new();
    for Piece { name, part, times } in all {
        match times {
            Some((reference_ns, subject_ns)) => {
                costs.push(Cost { name, part, reference_ns, subject_ns });
            }
            None if part == CostPart::Wait => {
                let why = "its wait is shorter than the kernel's accounts can tell";
                left_out.push(LeftOut { name, why: why.into() });
            }
            None => left_out.push(LeftOut { name, why: "it did not come to an end on both sides".into() }),
        }
    }
    (costs, left_out)
}

/// How long an operation waited, in nanoseconds: what is left of its time without that of processors. The kernel's threads
/// are counted in ticks, and one tick more or less over all repetitions is as much a wait as none: below that
/// there is no telling.
fn waited_ns(outcome: &WorkloadOutcome, name: &str) -> Option<f64> {
    let mean = |name: &str| outcome.metric(name).map(|metric| metric.mean);
    let elapsed_ns = mean(name)?;
    let wait_ns = elapsed_ns - mean(&format!("{name} cpu"))?;
    (wait_ns >= elapsed_ns * TICK_NS / SYSTEM_NS).then_some(wait_ns)
}

/// The wait in the middle; nothing where most rounds could not tell one.
fn middle_wait(rounds: &[Option<f64>]) -> Option<f64> {
    let told: Vec<f64> = rounds.iter().copied().flatten().collect();
    if 2 * told.len() <= rounds.len() { None } else { middle(told, |ns| *ns) }
}

#[cfg(test)]
#[path = "costs_tests.rs"]
mod tests;

//! What pieces of work cost natively and in a VM, with reference applications.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use virtbench_formats::read_filebench;
use virtbench_lab::{CarriedFile, LabError, MachineError, Translator, host_facts, pack, run_command};
use virtbench_record::{
    COSTS_FORMAT, Cost, CostPart, Costs, LeftOut, Reference, ReferenceRun, WorkloadOutcome,
};
use virtbench_workload::files::{FileLoad, FileSpec};
use virtbench_workload::{
    CommandSpec, CpuKernel, SystemKernel, SystemPart, Workload, WorkloadSpec, parse_workload,
};

use super::error::ApplicationsError;
use super::machine::{NativeSide, VmOptions, WorkloadMachine, find_guests, translator};
use super::metric::middle;
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
    let guests = find_guests(options, &[], progress)?.0;
    let translator = translator(&guests, progress);
    progress.doing("pieces of work natively");
    let place = native.place()?;
    let mut machine = place.machine(place.folder())?;
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
        origin: None,
        host,
        adapter: options.storage.to_string(),
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
    let measured = measure_references(options, native, translator.as_ref(), progress)?;
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

/// Those that virtbench brings along.
const REFERENCES: &str = include_str!("../../../../../../docs/data/references.toml");

/// How long the script that makes what they begin with may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(600);

/// How long each of one's runs takes, where that can be said; and how often others are run natively and in the VM,
/// where a run takes some ten times as long.
const RUN_NS: [u64; 2] = [700_000_000, 1_500_000_000];

const RUNS: [u32; 2] = [30, 3];

/// How often each is run on either side.
const REFERENCE_ROUNDS: usize = 3;

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct References {
    prepare: String,
    command: Vec<CommandReference>,
    model: Vec<ModelReference>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommandReference {
    name: String,
    words: Vec<String>,
    #[serde(default)]
    with: Vec<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelReference {
    name: String,
    text: String,
}

/// One that can be run.
struct Runnable {
    name: String,
    spec: WorkloadSpec,
}

/// What was measured of references, and those that could not be.
pub(super) struct Measured {
    pub(super) references: Vec<Reference>,
    pub(super) left_out: Vec<LeftOut>,
}

/// Runs all of them on both sides. One that fails on either is left out by name; a machine that fails ends it all, so
/// that no part of them passes for the whole.
pub(super) fn measure_references(
    options: &VmOptions,
    side: &NativeSide,
    translator: Option<&Translator>,
    progress: &mut Progress<'_>,
) -> Result<Measured, ApplicationsError> {
    let mut file = read(options)?;
    let mut left_out = Vec::new();
    file.command.retain(|command| match pack(&command.words[0], &command.with) {
        Ok(_) => true,
        Err(why) => {
            left_out.push(LeftOut { name: command.name.clone(), why: why.to_string() });
            false
        }
    });
    let runnable = runnable(&file)?;
    // What a subject with several processors is predicted from is not counted.
    let apart = Apart { counts: options.guest.vcpus == 1, translator };
    let folder = Folder::new(&options.folder, &file.prepare, progress)?;
    let mut vm = WorkloadMachine::boot(options, &carried(&file)?, Some(&folder.0), progress)?;
    let both = run_references(side, &file, &runnable, Some(&mut vm), &apart, progress);
    vm.end();
    let [reference, subject] = both?;
    let mut references = Vec::new();
    for ((one, reference), subject) in runnable.iter().zip(reference).zip(subject) {
        match (reference, subject) {
            (Ok(reference), Ok(subject)) => references.push(Reference {
                name: one.name.clone(),
                workers: one.spec.workload.threads(),
                reference,
                subject,
            }),
            (reference, subject) => {
                let why: Vec<String> = [reference.err(), subject.err()].into_iter().flatten().collect();
                left_out.push(LeftOut { name: one.name.clone(), why: why.join("; ") });
            }
        }
    }
    for LeftOut { name, why } in &left_out {
        progress.remark(&format!("{name} is no reference: {why}"));
    }
    Ok(Measured { references, left_out })
}

/// Runs references natively once more, in place of what is known of that side: how fast a machine's file system is, changes
/// within minutes, and an application and those that it is compared with have to have found it the same.
///
/// # Errors
/// One of them fails now, though it could be run before; or the agent fails.
pub fn renew_references(
    options: &VmOptions,
    side: &NativeSide,
    references: &mut [Reference],
    progress: &mut Progress<'_>,
) -> Result<(), ApplicationsError> {
    let file = read(options)?;
    let mut runnable = runnable(&file)?;
    runnable.retain(|one| references.iter().any(|known| known.name == one.name));
    if runnable.is_empty() {
        return Ok(());
    }
    let apart = Apart { counts: false, translator: None };
    let [again, _] = run_references(side, &file, &runnable, None, &apart, progress)?;
    for (one, again) in runnable.iter().zip(again) {
        let known = references.iter_mut().find(|known| known.name == one.name);
        let mut again = again.map_err(|why| {
            // Its old figure would be held against a machine that has changed meanwhile.
            ApplicationsError::Measured(format!("{} cannot be run natively any more: {why}", one.name).into())
        })?;
        if let Some(known) = known {
            // What it asks of the kernel stays the same, and so does how its code is translated.
            again.take_crossings(&known.reference);
            again.keep_translation(&known.reference);
            known.reference = again;
        }
    }
    Ok(())
}

fn read(options: &VmOptions) -> Result<References, ApplicationsError> {
    let text = options.references.as_deref().unwrap_or(REFERENCES);
    toml::from_str(text).map_err(|error| ApplicationsError::Input(format!("--references: {error}").into()))
}

/// What is measured of references in runs of their own on this host, as it slows them down.
struct Apart<'a> {
    /// Whether system calls are counted.
    counts: bool,
    /// What their user code is tried under.
    translator: Option<&'a Translator>,
}

/// All of them on this host, and in a VM in turn with it where there is one: what slows this host down for minutes slows both.
fn run_references(
    side: &NativeSide,
    file: &References,
    runnable: &[Runnable],
    vm: Option<&mut WorkloadMachine>,
    apart: &Apart<'_>,
    progress: &mut Progress<'_>,
) -> Result<[Vec<Tried>; 2], ApplicationsError> {
    let place = side.place()?;
    let folder = Folder::new(place.folder(), &file.prepare, progress)?;
    let mut machine = place.machine(&folder.0)?;
    let runs = rounds(&mut machine, vm, runnable, progress);
    machine.end();
    let [mut runs, in_vm] = runs?;
    if apart.counts {
        let mut machine = place.counting_machine(&folder.0)?;
        let what = ("its system calls counted", Round { side: 0, count: true });
        let counted =
            once_more(&mut machine, runnable, &mut runs, what, ReferenceRun::take_crossings, progress);
        machine.end();
        counted?;
    }
    if let Some(translator) = apart.translator {
        let mut machine = place.translating_machine(&folder.0, translator)?;
        // It is as slow as in the VM, and run as often.
        let what = ("translated", Round { side: 1, count: false });
        let translated =
            once_more(&mut machine, runnable, &mut runs, what, ReferenceRun::take_translation, progress);
        machine.end();
        translated?;
    }
    Ok([runs, in_vm])
}

/// Runs programs once more, and adds what was found to what is known of them. Of loads of the agent's own nothing is said: the agent is not
/// translated, and most of its calls read the clock and cost less than those of programs, which were predicted worse with them among the
/// references.
fn once_more(
    machine: &mut WorkloadMachine,
    runnable: &[Runnable],
    runs: &mut [Tried],
    (what, round): (&str, Round),
    take: fn(&mut ReferenceRun, &ReferenceRun),
    progress: &mut Progress<'_>,
) -> Result<(), ApplicationsError> {
    for (one, run) in runnable.iter().zip(runs) {
        let Ok(run) = run else { continue };
        if !matches!(one.spec.workload, Workload::Command(_)) {
            continue;
        }
        progress.doing(&format!("reference {} natively, {what}", one.name));
        match self::run(machine, one, &round, progress)? {
            Ok(found) => take(run, &found),
            Err(why) => progress.remark(&format!("reference {}, {what}: {why}", one.name)),
        }
    }
    Ok(())
}

/// What a reference did, or why it did nothing.
type Tried = Result<ReferenceRun, String>;

/// Runs all of them several times in turn, each natively and then in the VM where there is one, and keeps of each the run in the middle: what
/// slows a machine down for a moment is not taken for a reference's own.
fn rounds(
    native: &mut WorkloadMachine,
    vm: Option<&mut WorkloadMachine>,
    runnable: &[Runnable],
    progress: &mut Progress<'_>,
) -> Result<[Vec<Tried>; 2], ApplicationsError> {
    let mut machines: Vec<&mut WorkloadMachine> = [Some(native), vm].into_iter().flatten().collect();
    let mut all = [(); 2].map(|()| vec![(Vec::new(), String::new()); runnable.len()]);
    for round in 1..=REFERENCE_ROUNDS {
        for (place, one) in runnable.iter().enumerate() {
            for (side, machine) in machines.iter_mut().enumerate() {
                let what = ["natively", "in the VM"][side];
                progress
                    .doing(&format!("reference {} {what}, round {round} of {REFERENCE_ROUNDS}", one.name));
                let (runs, why) = &mut all[side][place];
                match run(machine, one, &Round { side, count: false }, progress)? {
                    Ok(run) => runs.push(run),
                    Err(error) => *why = error,
                }
            }
        }
    }
    let one = |(runs, why): (Vec<ReferenceRun>, String)| middle(runs, |run| run.per_second).ok_or(why);
    Ok(all.map(|side| side.into_iter().map(one).collect()))
}

fn runnable(file: &References) -> Result<Vec<Runnable>, ApplicationsError> {
    let wrong = |name: &str, error: String| ApplicationsError::Input(format!("{name}: {error}").into());
    let mut all = Vec::new();
    for CommandReference { name, words, .. } in &file.command {
        let spec = WorkloadSpec::new(Workload::Command(CommandSpec::new(words.clone())));
        all.push(Runnable { name: name.clone(), spec });
    }
    for ModelReference { name, text } in &file.model {
        let read =
            read_filebench(name, text.as_bytes(), &[]).map_err(|error| wrong(name, error.to_string()))?;
        let spec = WorkloadSpec::new(Workload::Files(FileSpec::new(FileLoad::Model(read.model))));
        all.push(Runnable { name: name.clone(), spec });
    }
    Ok(all)
}

fn carried(file: &References) -> Result<Vec<CarriedFile>, ApplicationsError> {
    let mut all: Vec<CarriedFile> = Vec::new();
    for command in &file.command {
        let packed = pack(&command.words[0], &command.with);
        let packed = packed.map_err(|error| ApplicationsError::Target(error.into()))?;
        for file in packed {
            if !all.iter().any(|known| known.path == file.path) {
                all.push(file);
            }
        }
    }
    Ok(all)
}

/// How references are run: on which side, of which 0 is the reference, and whether their system calls are counted.
struct Round {
    side: usize,
    count: bool,
}

/// Runs one. The inner error is the reference's own; the outer one the machine's, or a
/// stop.
fn run(
    machine: &mut WorkloadMachine,
    one: &Runnable,
    round: &Round,
    progress: &Progress<'_>,
) -> Result<Result<ReferenceRun, String>, ApplicationsError> {
    // An emulated processor is slowed down by samples.
    let Round { side, count } = *round;
    let mut spec = WorkloadSpec { runs: 1, sample: side == 0 && !count, count, ..one.spec.clone() };
    match &mut spec.workload {
        Workload::Files(files) => files.run_ns = RUN_NS[side],
        Workload::Command(_) => (spec.warm_ups, spec.runs) = (1, RUNS[side]),
        Workload::Memory(_) | Workload::Cpu(_) | Workload::System(_) => {}
    }
    let outcome = match machine.run(spec, progress) {
        Err(ApplicationsError::Machine(LabError::Machine {
            source: MachineError::Refused { message, .. },
            ..
        })) => return Ok(Err(message)),
        outcome => outcome?.0,
    };
    Ok(reference_run(&outcome).ok_or_else(|| {
        let said = outcome.command.as_ref().map_or("", |end| end.output.as_str());
        format!("there is no rate, or no footprint; {:?} {said}", outcome.error_kinds)
    }))
}

/// How often a second, and with what footprint.
fn reference_run(outcome: &WorkloadOutcome) -> Option<ReferenceRun> {
    let footprint = outcome.footprint.clone()?;
    if outcome.errors > 0 {
        return None;
    }
    let per_second = if outcome.command.is_some() {
        f64::from(outcome.runs) * 1e9 / footprint.elapsed_ns as f64
    } else {
        outcome.operations as f64 * 1e9 / footprint.elapsed_ns as f64
    };
    (per_second > 0.0).then_some(ReferenceRun { per_second, footprint })
}

/// A folder with what they begin with; it goes with this value.
struct Folder(PathBuf);

impl Folder {
    fn new(parent: &Path, prepare: &str, progress: &Progress<'_>) -> Result<Self, ApplicationsError> {
        let folder = Self(parent.join(format!("virtbench-references-{}", std::process::id())));
        fs::create_dir_all(&folder.0).map_err(|error| {
            ApplicationsError::Environment(format!("cannot make {}: {error}", folder.0.display()).into())
        })?;
        let mut command = Command::new("sh");
        command.args(["-ec", prepare]).current_dir(&folder.0);
        run_command(command, "making what references begin with", PREPARE_LIMIT, progress.stop)?;
        Ok(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
#[path = "costs_tests.rs"]
mod tests;

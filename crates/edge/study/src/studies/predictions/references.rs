//! Reference applications, natively and in the VM: what `virtbench costs` learns from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;
use virtbench_formats::read_filebench;
use virtbench_lab::{CarriedFile, LabError, MachineError, pack, run_command};
use virtbench_record::{LeftOut, Reference, ReferenceRun, WorkloadOutcome};
use virtbench_workload::files::{FileLoad, FileSpec};
use virtbench_workload::{CommandSpec, Workload, WorkloadSpec};

use super::error::ApplicationsError;
use super::machine::WorkloadMachine;
use super::middle::middle;
use super::native_folder::NativeSide;
use super::options::VmOptions;
use crate::runner::progress::Progress;

/// Those that virtbench brings along.
const REFERENCES: &str = include_str!("../../../../../../docs/data/references.toml");
/// How long the script that makes what they begin with may take.
const PREPARE_LIMIT: Duration = Duration::from_secs(600);
/// How long each of one's runs takes, where that can be said; and how often others are run natively and in the VM,
/// where a run takes some ten times as long.
const RUN_NS: [u64; 2] = [700_000_000, 1_500_000_000];
const RUNS: [u32; 2] = [30, 3];
/// How often each is run on either side.
const ROUNDS: usize = 3;

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
    let reference = native(side, &file, &runnable, progress)?;
    let folder = Folder::new(&options.folder, &file.prepare, progress)?;
    let mut vm = WorkloadMachine::boot(options, &carried(&file)?, Some(&folder.0), progress)?;
    let subject = rounds(&mut vm, &runnable, 1, progress);
    vm.end();
    let mut references = Vec::new();
    for ((one, reference), subject) in runnable.iter().zip(reference).zip(subject?) {
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
    let again = native(side, &file, &runnable, progress)?;
    for (one, again) in runnable.iter().zip(again) {
        let known = references.iter_mut().find(|known| known.name == one.name);
        let again = again.map_err(|why| {
            // Its old figure would be held against a machine that has changed meanwhile.
            ApplicationsError::Measured(format!("{} cannot be run natively any more: {why}", one.name).into())
        })?;
        if let Some(known) = known {
            known.reference = again;
        }
    }
    Ok(())
}

fn read(options: &VmOptions) -> Result<References, ApplicationsError> {
    let text = options.references.as_deref().unwrap_or(REFERENCES);
    toml::from_str(text).map_err(|error| ApplicationsError::Input(format!("--references: {error}").into()))
}

/// All of them on this host.
fn native(
    side: &NativeSide,
    file: &References,
    runnable: &[Runnable],
    progress: &mut Progress<'_>,
) -> Result<Vec<Result<ReferenceRun, String>>, ApplicationsError> {
    let place = side.place()?;
    let folder = Folder::new(place.folder(), &file.prepare, progress)?;
    let mut machine = WorkloadMachine::native(folder.0.clone())?;
    let runs = rounds(&mut machine, runnable, 0, progress);
    machine.end();
    runs
}

/// Runs all of them several times in turn, and keeps of each the run in the middle: what slows a machine down for a moment
/// is not taken for a reference's own.
fn rounds(
    machine: &mut WorkloadMachine,
    runnable: &[Runnable],
    side: usize,
    progress: &mut Progress<'_>,
) -> Result<Vec<Result<ReferenceRun, String>>, ApplicationsError> {
    let mut all: Vec<Vec<ReferenceRun>> = runnable.iter().map(|_| Vec::new()).collect();
    let mut why = vec![String::new(); runnable.len()];
    for round in 1..=ROUNDS {
        for (place, one) in runnable.iter().enumerate() {
            let what = ["natively", "in the VM"][side];
            progress.doing(&format!("reference {} {what}, round {round} of {ROUNDS}", one.name));
            match run(machine, one, side, progress)? {
                Ok(run) => all[place].push(run),
                Err(error) => why[place] = error,
            }
        }
    }
    let one = |(runs, why): (Vec<ReferenceRun>, String)| middle(runs, |run| run.per_second).ok_or(why);
    Ok(all.into_iter().zip(why).map(one).collect())
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

/// Runs one on one side; 0 is the reference. The inner error is the reference's own; the outer one the machine's, or a
/// stop.
fn run(
    machine: &mut WorkloadMachine,
    one: &Runnable,
    side: usize,
    progress: &Progress<'_>,
) -> Result<Result<ReferenceRun, String>, ApplicationsError> {
    // An emulated processor is slowed down by samples.
    let mut spec = WorkloadSpec { runs: 1, sample: side == 0, ..one.spec.clone() };
    match &mut spec.workload {
        Workload::Files(files) => files.run_ns = RUN_NS[side],
        Workload::Command(_) => spec.runs = RUNS[side],
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
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::fake_machine::FakeMachine;

    #[test]
    fn a_machine_that_dies_and_a_stop_leave_no_references_rather_than_some() {
        let all = runnable(&toml::from_str(REFERENCES).unwrap()).unwrap();
        for stopped in [false, true] {
            let stop = AtomicBool::new(stopped);
            let mut said = Vec::new();
            let mut progress = Progress { stop: &stop, observer: &mut said };
            // Its agent hangs up.
            let mut machine = WorkloadMachine::new(FakeMachine::boxed(drop));
            let error = rounds(&mut machine, &all, 1, &mut progress).err().unwrap();
            assert_eq!(matches!(error, ApplicationsError::Stopped), stopped, "{error}");
            assert_eq!(matches!(error, ApplicationsError::Machine(_)), !stopped, "{error}");
            assert_eq!(said.len(), 1, "the others are not tried: {said:?}");
        }
    }

    #[test]
    fn the_references_can_be_read_and_each_has_a_name_of_its_own() {
        let file: References = toml::from_str(REFERENCES).unwrap();
        let all = runnable(&file).unwrap();
        let names: std::collections::BTreeSet<&str> = all.iter().map(|one| one.name.as_str()).collect();
        assert!(names.len() == all.len() && all.len() >= 12);
        for one in &all {
            one.spec.validate().unwrap();
        }
    }
}

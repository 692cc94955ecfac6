//! Reference applications, natively and in the VM: what `virtbench costs` learns from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use virtbench_formats::read_filebench;
use virtbench_lab::{CarriedFile, pack};
use virtbench_record::{Reference, ReferenceRun, WorkloadOutcome};
use virtbench_workload::files::{FileLoad, FileSpec};
use virtbench_workload::{CommandSpec, Workload, WorkloadSpec};

use crate::args::there::ThereArgs;
use crate::exit::{Failure, Kind};
use crate::middle::middle;
use crate::native_place::NativeSide;
use crate::say::tell;
use crate::there::There;

/// They, as a file.
const REFERENCES: &str = include_str!("../../../../../docs/data/references.toml");
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

/// Runs all of them on both sides. One that fails on either is left out, with a word on stderr.
pub fn measure(there: &ThereArgs, side: &NativeSide, vcpus: u32) -> Result<Vec<Reference>, Failure> {
    let mut file = read(there)?;
    file.command.retain(|command| match pack(&command.words[0], &command.with) {
        Ok(_) => true,
        Err(why) => {
            tell!("{} is no reference: {why}", command.name);
            false
        }
    });
    let runnable = runnable(&file)?;
    let reference = native(side, &file, &runnable)?;
    let folder = Folder::new(&there.folder()?, &file.prepare)?;
    let mut vm = There::boot(there, vcpus, &carried(&file)?, Some(&folder.0))?;
    let subject = rounds(&mut vm, &runnable, 1);
    vm.end();
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
                tell!("{} is no reference: {}", one.name, why.join("; "));
            }
        }
    }
    Ok(references)
}

/// Runs them natively once more, in place of what is known of that side: how fast a machine's file system is, changes
/// within minutes, and an application and those that it is compared with have to have found it the same.
pub fn renew(there: &ThereArgs, side: &NativeSide, references: &mut [Reference]) -> Result<(), Failure> {
    let file = read(there)?;
    let mut runnable = runnable(&file)?;
    runnable.retain(|one| references.iter().any(|known| known.name == one.name));
    let again = native(side, &file, &runnable)?;
    for (one, again) in runnable.iter().zip(again) {
        let known = references.iter_mut().find(|known| known.name == one.name);
        if let (Some(known), Ok(again)) = (known, again) {
            known.reference = again;
        }
    }
    Ok(())
}

fn read(there: &ThereArgs) -> Result<References, Failure> {
    let text = match &there.references {
        Some(path) => fs::read_to_string(path)
            .map_err(|error| Failure::message(Kind::Usage, format!("{}: {error}", path.display())))?,
        None => REFERENCES.to_owned(),
    };
    toml::from_str(&text).map_err(|error| Failure::message(Kind::Usage, format!("--references: {error}")))
}

/// All of them on this host.
fn native(
    side: &NativeSide,
    file: &References,
    runnable: &[Runnable],
) -> Result<Vec<Result<ReferenceRun, String>>, Failure> {
    let place = side.place()?;
    let folder = Folder::new(place.folder(), &file.prepare)?;
    let mut machine = There::native(folder.0.clone())?;
    let runs = rounds(&mut machine, runnable, 0);
    machine.end();
    Ok(runs)
}

/// Runs all of them several times in turn, and keeps of each the run in the middle: what slows a machine down for a moment
/// is not taken for a reference's own.
fn rounds(machine: &mut There, runnable: &[Runnable], side: usize) -> Vec<Result<ReferenceRun, String>> {
    let mut all: Vec<Vec<ReferenceRun>> = runnable.iter().map(|_| Vec::new()).collect();
    let mut why = vec![String::new(); runnable.len()];
    for _ in 0..ROUNDS {
        for (place, one) in runnable.iter().enumerate() {
            match run(machine, one, side) {
                Ok(run) => all[place].push(run),
                Err(error) => why[place] = error,
            }
        }
    }
    let one = |(runs, why): (Vec<ReferenceRun>, String)| middle(runs, |run| run.per_second).ok_or(why);
    all.into_iter().zip(why).map(one).collect()
}

fn runnable(file: &References) -> Result<Vec<Runnable>, Failure> {
    let wrong = |name: &str, error: String| Failure::message(Kind::Other, format!("{name}: {error}"));
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

fn carried(file: &References) -> Result<Vec<CarriedFile>, Failure> {
    let mut all: Vec<CarriedFile> = Vec::new();
    for command in &file.command {
        let packed =
            pack(&command.words[0], &command.with).map_err(|error| Failure::new(Kind::Target, error))?;
        for file in packed {
            if !all.iter().any(|known| known.path == file.path) {
                all.push(file);
            }
        }
    }
    Ok(all)
}

/// Runs one on one side; 0 is the reference.
fn run(machine: &mut There, one: &Runnable, side: usize) -> Result<ReferenceRun, String> {
    // An emulated processor is slowed down by samples.
    let mut spec = WorkloadSpec { runs: 1, sample: side == 0, ..one.spec.clone() };
    match &mut spec.workload {
        Workload::Files(files) => files.run_ns = RUN_NS[side],
        Workload::Command(_) => spec.runs = RUNS[side],
        Workload::Memory(_) | Workload::Cpu(_) | Workload::System(_) => {}
    }
    let outcome = machine.run(spec).map_err(|error| format!("{error:#}"))?.outcome;
    of(&outcome).ok_or_else(|| {
        let said = outcome.command.as_ref().map_or("", |end| end.output.as_str());
        format!("there is no rate, or no footprint; {:?} {said}", outcome.error_kinds)
    })
}

fn of(outcome: &WorkloadOutcome) -> Option<ReferenceRun> {
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
    fn new(parent: &Path, prepare: &str) -> Result<Self, Failure> {
        let folder = Self(parent.join(format!("virtbench-references-{}", std::process::id())));
        fs::create_dir_all(&folder.0)?;
        let output = Command::new("sh").args(["-ec", prepare]).current_dir(&folder.0).output()?;
        if output.status.success() {
            return Ok(folder);
        }
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        Err(Failure::message(Kind::Target, format!("what references begin with cannot be made: {said}")))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

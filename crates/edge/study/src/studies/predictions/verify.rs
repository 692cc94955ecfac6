//! Runs the application in the VM, to see how far a prediction was off.

use std::path::{Path, PathBuf};

use virtbench_lab::pack;
use virtbench_record::{Capacity, Case, Footprint, GuestFacts, HostUse, Profile, WorkloadOutcome};
use virtbench_workload::{CommandSpec, Workload, WorkloadSpec};

use super::error::ApplicationsError;
use super::machine::{VmOptions, WorkloadMachine};
use super::metric::{Metric, middle};
use crate::runner::progress::Progress;
use crate::user_files::read_workload;

/// What the application did in the VM.
#[derive(Debug, Clone)]
pub struct Verified {
    /// Its capacity there.
    pub capacity: f64,
    /// Its capacity on the reference, run by run in turn with the VM; nothing where it was not run there.
    pub reference: Option<f64>,
    /// The VM's processors while it ran, user and system code, in percent of one, where they were seen.
    pub machine_percent: Option<[f64; 2]>,
    /// What the host did meanwhile, where that was seen.
    pub host: Option<HostUse>,
    /// The VM.
    pub guest: Option<GuestFacts>,
}

/// What the application is given in the VM.
#[derive(Debug, Clone)]
pub struct VerifyInputs<'a> {
    /// Files and folders that it needs there besides its libraries.
    pub with: Vec<PathBuf>,
    /// What the VM's disk begins with a copy of.
    pub disk_from: Option<&'a Path>,
    /// How often it is run, one run after the other; the one in the middle counts.
    pub runs: u32,
}

/// The reference, on which an application is run in turn with the VM: what slows the host down for minutes slows both.
pub(super) struct InTurn {
    pub(super) machine: WorkloadMachine,
    /// Whether the kernel's functions are sampled, as they were when it was profiled there.
    pub(super) sample: bool,
}

impl<'a> VerifyInputs<'a> {
    /// Those of a case that begins with a copy of the folder `prepared`, for so many runs.
    pub(super) fn of_case(case: &Case, prepared: &'a Path, runs: u32) -> Self {
        Self { with: case.with.iter().map(PathBuf::from).collect(), disk_from: Some(prepared), runs }
    }
}

/// Runs the profile's application in a VM.
///
/// # Errors
/// The profile does not say what is run or measured, the VM lacks something, or the application failed.
pub fn verify(
    profile: &Profile,
    options: &VmOptions,
    inputs: &VerifyInputs<'_>,
    progress: &mut Progress<'_>,
) -> Result<Verified, ApplicationsError> {
    verify_in_turn(profile, VmToRun { options, inputs }, |_| Ok(None), progress)
}

/// The same in turn with the reference, where `reference` starts one: after the VM.
pub(super) fn verify_in_turn(
    profile: &Profile,
    vm: VmToRun<'_>,
    reference: impl FnOnce(&mut Progress<'_>) -> Result<Option<InTurn>, ApplicationsError>,
    progress: &mut Progress<'_>,
) -> Result<Verified, ApplicationsError> {
    let wrong = |message: &str| ApplicationsError::Input(message.into());
    if profile.command.is_empty() {
        return Err(wrong(
            "--verify: the profile holds no command to run: make one by `virtbench profile --metric ... -- COMMAND`",
        ));
    }
    if profile.metric.is_none() && profile.capacity.is_some() {
        return Err(wrong(
            "--verify: the profile does not say what its capacity is read from: make one with --metric",
        ));
    }
    let application = AgentRun::new(&profile.command, profile.metric.as_deref(), vm.options.limit_ns)?;
    let mut machine = application.boot(vm, progress)?;
    let guest = machine.guest();
    let runs = match reference(progress) {
        Ok(in_turn) => application.run(&mut machine, in_turn, vm.inputs.runs, progress),
        Err(error) => Err(error),
    };
    machine.end();
    let (VmRun { capacity, outcome, host }, reference) = runs?;
    let percent = |seen: Footprint| seen.cpu_ns.map(|ns| 100.0 * ns as f64 / seen.elapsed_ns.max(1) as f64);
    Ok(Verified {
        capacity: capacity.value,
        reference,
        machine_percent: outcome.footprint.map(percent),
        host: Some(host),
        guest,
    })
}

/// An application's run in a VM.
#[derive(Debug)]
pub(super) struct VmRun {
    pub(super) capacity: Capacity,
    pub(super) outcome: WorkloadOutcome,
    pub(super) host: HostUse,
}

/// The VM that an application is run in, and what it is given there.
#[derive(Clone, Copy)]
pub(super) struct VmToRun<'a> {
    pub(super) options: &'a VmOptions,
    pub(super) inputs: &'a VerifyInputs<'a>,
}

/// An application as an agent is told to run it, and how its capacity is read.
pub(super) struct AgentRun<'a> {
    command: &'a [String],
    pub(super) spec: WorkloadSpec,
    /// Nothing of a workload of our own.
    pub(super) metric: Option<Metric>,
}

impl<'a> AgentRun<'a> {
    /// A command line, its capacity read by `metric` where it is no workload of our own, within so many nanoseconds.
    pub(super) fn new(
        command: &'a [String],
        metric: Option<&str>,
        limit_ns: u64,
    ) -> Result<Self, ApplicationsError> {
        let spec = agent_workload(command, limit_ns);
        let wrong = |why: String| ApplicationsError::Input(format!("metric: {why}").into());
        let metric = match (&spec.workload, metric) {
            (Workload::Command(_), Some(metric)) => Some(Metric::parse(metric).map_err(wrong)?),
            (Workload::Command(_), None) => Some(Metric::Io),
            _ => None,
        };
        Ok(Self { command, spec, metric })
    }

    /// A VM with its programs.
    pub(super) fn boot(
        &self,
        vm: VmToRun<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<WorkloadMachine, ApplicationsError> {
        let carried = match self.metric {
            Some(_) => pack(&self.command[0], &vm.inputs.with),
            None => Ok(Vec::new()),
        };
        let carried = carried.map_err(|error| ApplicationsError::Target(error.into()))?;
        WorkloadMachine::boot(vm.options, &carried, vm.inputs.disk_from, progress)
    }

    /// Runs it in a VM of its own as often as the VM's inputs say; the run in the middle.
    pub(super) fn in_vm(
        &self,
        vm: VmToRun<'_>,
        progress: &mut Progress<'_>,
    ) -> Result<VmRun, ApplicationsError> {
        let mut machine = self.boot(vm, progress)?;
        let run = self.run(&mut machine, None, vm.inputs.runs, progress);
        machine.end();
        Ok(run?.0)
    }

    /// Runs it so often in a VM, in turn with the reference where there is one, which is ended; the run in the middle of each.
    fn run(
        &self,
        vm: &mut WorkloadMachine,
        mut in_turn: Option<InTurn>,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<(VmRun, Option<f64>), ApplicationsError> {
        let run = self.run_by_turns(vm, in_turn.as_mut(), runs, progress);
        if let Some(InTurn { machine, .. }) = in_turn {
            machine.end();
        }
        run
    }

    fn run_by_turns(
        &self,
        vm: &mut WorkloadMachine,
        mut in_turn: Option<&mut InTurn>,
        runs: u32,
        progress: &mut Progress<'_>,
    ) -> Result<(VmRun, Option<f64>), ApplicationsError> {
        let (mut all, mut reference) = (Vec::new(), Vec::new());
        for _ in 0..runs.max(1) {
            let (outcome, host) = vm.run(self.spec.clone(), progress)?;
            let capacity = run_capacity(&outcome, self.metric.as_ref(), "in the VM")?;
            all.push(VmRun { capacity, outcome, host });
            if let Some(InTurn { machine, sample }) = &mut in_turn {
                let outcome = machine.run(WorkloadSpec { sample: *sample, ..self.spec.clone() }, progress)?.0;
                reference.push(run_capacity(&outcome, self.metric.as_ref(), "on the reference")?.value);
            }
        }
        let counts = middle(all, |run| run.capacity.value);
        let counts = counts.ok_or_else(|| ApplicationsError::Measured("nothing was run in the VM".into()))?;
        Ok((counts, middle(reference, |value| *value)))
    }
}

/// The capacity of a run `place`, in the VM or natively; a workload of our own has no metric.
///
/// # Errors
/// The application failed there, or there is no such figure.
pub(super) fn run_capacity(
    outcome: &WorkloadOutcome,
    metric: Option<&Metric>,
    place: &str,
) -> Result<Capacity, ApplicationsError> {
    if let Some(trouble) = outcome.command.as_ref().and_then(|end| Some((end.trouble()?, end))) {
        let (trouble, end) = trouble;
        let said: Vec<&str> = end.output.lines().rev().take(12).collect();
        let said: Vec<&str> = said.into_iter().rev().collect();
        let said = match said.join("\n  | ") {
            silence if silence.trim().is_empty() => "it said nothing".to_owned(),
            said => format!("it said:\n  | {said}"),
        };
        let message = format!("{place} the application {trouble}; {said}");
        return Err(ApplicationsError::Measured(message.into()));
    }
    match metric {
        Some(metric) => metric.capacity(outcome).map_err(|why| ApplicationsError::Measured(why.into())),
        None => {
            let throughput = outcome.throughput();
            let value = throughput.ok_or_else(|| {
                ApplicationsError::Measured(format!("the workload had no throughput {place}").into())
            })?;
            Ok(Capacity { name: "operations/s".into(), value })
        }
    }
}

/// What an agent is given to run a command line once, within so many nanoseconds: a workload of its own, or a program.
fn agent_workload(command: &[String], limit_ns: u64) -> WorkloadSpec {
    own_workload(command).unwrap_or_else(|| {
        let program = Workload::Command(CommandSpec::new(command.to_vec()));
        // A disk is mounted for each run, and what is read of it at first comes from the disk.
        WorkloadSpec { warm_ups: 1, runs: 1, limit_ns, ..WorkloadSpec::new(program) }
    })
}

/// The workload of a command line of virtbench's own, which the agent runs without a second program.
pub fn own_workload(command: &[String]) -> Option<WorkloadSpec> {
    let name = Path::new(command.first()?).file_name()?.to_str()?;
    if name != "virtbench" || command.get(1)? != "workload" {
        return None;
    }
    command[2..].iter().find_map(|word| read_workload(word, &mut |_| ()).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_of_our_own_are_recognised() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let spec = own_workload(&words("/x/virtbench workload --dir . fileserver:threads=2")).unwrap();
        assert_eq!(spec.workload.threads(), 2);
        assert!(own_workload(&words("virtbench load --target x")).is_none());
        assert!(own_workload(&words("dbench 4")).is_none());
    }
}

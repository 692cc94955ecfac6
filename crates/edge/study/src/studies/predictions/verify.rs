//! Runs the application in the VM, to see how far a prediction was off.

use std::path::{Path, PathBuf};

use virtbench_lab::pack;
use virtbench_record::{Capacity, GuestFacts, HostUse, JobOutcome, Profile, WorkloadOutcome};
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
    /// The VM's processors while it ran, user and system code, in percent of one, where they were seen.
    pub machine_percent: Option<[f64; 2]>,
    /// What the host did meanwhile, where that was seen.
    pub host: Option<HostUse>,
    /// The VM.
    pub guest: Option<GuestFacts>,
}

/// What the application is given in the VM.
#[derive(Debug, Clone, Copy)]
pub struct VerifyInputs<'a> {
    /// Files and folders that it needs there besides its libraries.
    pub with: &'a [PathBuf],
    /// What the VM's disk begins with a copy of.
    pub disk_from: Option<&'a Path>,
    /// How often it is run, one run after the other; the one in the middle counts.
    pub runs: u32,
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
    let wrong = |message: &str| ApplicationsError::Input(message.into());
    if profile.command.is_empty() {
        return Err(wrong(
            "--verify: the profile holds no command to run: make one by `virtbench profile --metric ... -- COMMAND`",
        ));
    }
    let (spec, carried) = match own_workload(&profile.command) {
        Some(spec) => (spec, Vec::new()),
        None => {
            let carried = pack(&profile.command[0], inputs.with);
            let carried = carried.map_err(|error| ApplicationsError::Target(error.into()))?;
            let command = Workload::Command(CommandSpec::new(profile.command.clone()));
            (WorkloadSpec { runs: 1, limit_ns: options.limit_ns, ..WorkloadSpec::new(command) }, carried)
        }
    };
    let is_command = matches!(spec.workload, Workload::Command(_));
    let metric = match &profile.metric {
        Some(metric) => Metric::parse(metric).map_err(|why| wrong(&format!("metric: {why}")))?,
        None => Metric::Io,
    };
    if profile.metric.is_none() && profile.capacity.is_some() {
        return Err(wrong(
            "--verify: the profile does not say what its capacity is read from: make one with --metric",
        ));
    }
    let mut machine = WorkloadMachine::boot(options, &carried, inputs.disk_from, progress)?;
    let guest = machine.guest();
    let all: Result<Vec<Verified>, ApplicationsError> = (0..inputs.runs.max(1))
        .map(|_| {
            let (outcome, host) = machine.run(spec.clone(), progress)?;
            let verified = verified(outcome, is_command.then_some(&metric))?;
            Ok(Verified { host: Some(host), ..verified })
        })
        .collect();
    machine.end();
    let counts = middle(all?, |run| run.capacity);
    let counts = counts.ok_or_else(|| ApplicationsError::Measured("nothing was run in the VM".into()))?;
    Ok(Verified { guest, ..counts })
}

/// The capacity of a run `place`, in the VM or natively; a workload of our own has no metric.
///
/// # Errors
/// The application failed there, or there is no such figure.
pub(super) fn run_capacity(
    outcome: WorkloadOutcome,
    metric: Option<&Metric>,
    place: &str,
) -> Result<f64, ApplicationsError> {
    if let Some(trouble) = outcome.command.as_ref().and_then(|end| Some((end.trouble()?, end))) {
        let (trouble, end) = trouble;
        let said: Vec<&str> = end.output.lines().rev().take(12).collect();
        let said: Vec<&str> = said.into_iter().rev().collect();
        let message = format!("{place} the application {trouble}; it said:\n  | {}", said.join("\n  | "));
        return Err(ApplicationsError::Measured(message.into()));
    }
    match metric {
        Some(metric) => {
            let capacity: Capacity =
                metric.capacity(&outcome).map_err(|why| ApplicationsError::Measured(why.into()))?;
            Ok(capacity.value)
        }
        None => JobOutcome::Workload(Box::new(outcome)).throughput().ok_or_else(|| {
            ApplicationsError::Measured(format!("the workload had no throughput {place}").into())
        }),
    }
}

/// The result of a run in the VM.
fn verified(outcome: WorkloadOutcome, metric: Option<&Metric>) -> Result<Verified, ApplicationsError> {
    let machine_percent = outcome
        .footprint
        .as_ref()
        .map(|footprint| footprint.cpu_ns.map(|ns| 100.0 * ns as f64 / footprint.elapsed_ns.max(1) as f64));
    let capacity = run_capacity(outcome, metric, "in the VM")?;
    Ok(Verified { capacity, machine_percent, host: None, guest: None })
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

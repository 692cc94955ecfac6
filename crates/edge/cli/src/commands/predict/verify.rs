//! Runs the application in the VM, to see how far a prediction was off.

use std::path::Path;

use virtbench_lab::pack;
use virtbench_record::{Capacity, JobOutcome, Profile, WorkloadOutcome};
use virtbench_workload::{CommandSpec, Workload, WorkloadSpec};

use crate::args::read_workload;
use crate::args::there::{ThereArgs, VerifyArgs};
use crate::exit::{Failure, Kind};
use crate::metric::Metric;
use crate::middle::middle;
use crate::there::There;

/// What the application did in the VM.
#[derive(Debug, Clone)]
pub struct Verified {
    /// Its capacity there.
    pub capacity: f64,
    /// The VM's processors while it ran, user and system code, in percent of one, where they were seen.
    pub machine_percent: Option<[f64; 2]>,
}

/// Runs the profile's application in a VM, so often one after the other; the run in the middle counts.
pub fn verify(
    profile: &Profile,
    there: &ThereArgs,
    args: &VerifyArgs,
    vcpus: u32,
    runs: u32,
) -> Result<Verified, Failure> {
    let usage = |message: String| Failure::message(Kind::Usage, message);
    if profile.command.is_empty() {
        return Err(usage(
            "--verify: the profile holds no command to run: make one by `virtbench profile --metric ... -- COMMAND`"
                .into(),
        ));
    }
    let (spec, carried) = match own_workload(&profile.command) {
        Some(spec) => (spec, Vec::new()),
        None => {
            let carried = pack(&profile.command[0], &args.with);
            let carried = carried.map_err(|error| Failure::new(Kind::Target, error))?;
            let command = Workload::Command(CommandSpec::new(profile.command.clone()));
            (WorkloadSpec { runs: 1, limit_ns: there.limit, ..WorkloadSpec::new(command) }, carried)
        }
    };
    let is_command = matches!(spec.workload, Workload::Command(_));
    let metric = match &profile.metric {
        Some(metric) => Metric::parse(metric).map_err(|why| usage(format!("metric: {why}")))?,
        None => Metric::Io,
    };
    if profile.metric.is_none() && profile.capacity.is_some() {
        return Err(usage(
            "--verify: the profile does not say what its capacity is read from: make one with --metric"
                .into(),
        ));
    }
    let mut machine = There::boot(there, vcpus, &carried, args.disk_from.as_deref())?;
    let all =
        (0..runs.max(1)).map(|_| verified(machine.run(spec.clone())?.outcome, is_command.then_some(&metric)));
    let all: Result<Vec<Verified>, Failure> = all.collect();
    machine.end();
    middle(all?, |run| run.capacity)
        .ok_or_else(|| Failure::message(Kind::Measured, "nothing was run in the VM"))
}

/// What a run came to; a workload of our own has no metric.
fn verified(outcome: WorkloadOutcome, metric: Option<&Metric>) -> Result<Verified, Failure> {
    if let Some(trouble) = outcome.command.as_ref().and_then(|end| Some((end.trouble()?, end))) {
        let (trouble, end) = trouble;
        let said: Vec<&str> = end.output.lines().rev().take(12).collect();
        let said: Vec<&str> = said.into_iter().rev().collect();
        let message = format!("in the VM the application {trouble}; it said:\n  | {}", said.join("\n  | "));
        return Err(Failure::message(Kind::Measured, message));
    }
    let machine_percent = outcome
        .footprint
        .as_ref()
        .map(|footprint| footprint.cpu_ns.map(|ns| 100.0 * ns as f64 / footprint.elapsed_ns.max(1) as f64));
    let capacity = match metric {
        Some(metric) => {
            let capacity: Capacity =
                metric.of(&outcome).map_err(|why| Failure::message(Kind::Measured, why))?;
            capacity.value
        }
        None => JobOutcome::Workload(Box::new(outcome))
            .throughput()
            .ok_or_else(|| Failure::message(Kind::Measured, "the workload had no throughput in the VM"))?,
    };
    Ok(Verified { capacity, machine_percent })
}

/// The workload of a command line of virtbench's own, which the agent runs without a second program.
pub fn own_workload(command: &[String]) -> Option<WorkloadSpec> {
    let name = Path::new(command.first()?).file_name()?.to_str()?;
    if name != "virtbench" || command.get(1)? != "workload" {
        return None;
    }
    command[2..].iter().find_map(|word| read_workload(word).ok())
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

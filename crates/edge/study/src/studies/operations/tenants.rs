//! Tenants: machines under a load of their own while operations go on around them.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_lab::{Assignment, LabError, Machine, TimeLimits, measure_together};
use virtbench_record::TenantMeasured;
use virtbench_workload::{AccessLine, AccessSpec, JobSpec, LoadSpec};

use crate::environments::MadeEnvironments;
use crate::runner::course::nanoseconds;
use crate::runner::job_in_study::{fit, sized};
use crate::studies::colocation::NamedJob;
use crate::study_error::StudyError;

/// Where no workload is given: block of a tenant's operations, in bytes, and its shares of reads and of random seeks, in percent.
const LOAD: (u64, f64, f64) = (4096, 70.0, 100.0);

/// Machines that run, each with a disk of its own.
pub struct Tenants {
    // Before their disks go.
    machines: Vec<Box<dyn Machine>>,
    made: MadeEnvironments,
    job: JobSpec,
}

/// What tenants do: the workload that is given, or small random I/O, one at a time, on the whole disk of so many bytes.
///
/// # Errors
/// The workload keeps files, for which tenants' disks have no file system.
pub fn tenant_job(given: Option<&NamedJob>, size_bytes: u64) -> Result<JobSpec, StudyError> {
    let (block, reads, randoms) = LOAD;
    let access = AccessSpec::single(AccessLine::new(block, reads, randoms));
    let usual = || LoadSpec { outstanding: 1, ..LoadSpec::new(access, size_bytes) }.into();
    match given.map(|job| &job.spec) {
        Some(JobSpec::Workload(spec)) if spec.workload.needs_storage() => Err(StudyError::input(
            "a tenant's disk has no file system: take a load (load:size=4k,read=70), memory or cpu",
        )),
        given => Ok(sized(&given.cloned().unwrap_or_else(usual), size_bytes)),
    }
}

impl Tenants {
    /// Starts a machine in each environment, which does this job meanwhile.
    ///
    /// # Errors
    /// One does not start.
    pub fn start(mut made: MadeEnvironments, job: JobSpec) -> Result<Self, StudyError> {
        let started = made.environments.iter_mut().map(|environment| environment.start());
        let mut machines = started.collect::<Result<Vec<_>, LabError>>()?;
        for machine in &mut machines {
            let name = machine.name().to_owned();
            let target = machine.make_target(&mut |_, _| true);
            target.map_err(|source| LabError::Machine { machine: name, source })?;
        }
        Ok(Self { machines, made, job })
    }

    /// The folder of this host in which their disks lie, where some do.
    pub(super) fn storage(&self) -> Option<&Path> {
        self.made.storage()
    }

    /// What can be loaded from another thread.
    pub(super) fn lend(&mut self) -> Lent<'_> {
        Lent { machines: &mut self.machines, job: &self.job }
    }
}

/// The machines of tenants, whose disks stay where they are.
pub(super) struct Lent<'a> {
    machines: &'a mut [Box<dyn Machine>],
    job: &'a JobSpec,
}

impl Lent<'_> {
    /// Gives all their job at one moment, for so long.
    ///
    /// # Errors
    /// One fails, or `stop` was set.
    pub(super) fn load(
        self,
        length: Duration,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<TenantMeasured>, StudyError> {
        let mut spec = self.job.clone();
        fit(&mut spec, Some(nanoseconds(length)), Some(0))?;
        if let JobSpec::Load(load) = &mut spec {
            load.seed = seed;
        }
        let names: Vec<String> = self.machines.iter().map(|machine| machine.name().to_owned()).collect();
        let assignments = self
            .machines
            .iter_mut()
            .map(|machine| Assignment { machine: machine.as_mut(), spec: spec.clone() });
        let together = measure_together(assignments.collect(), &[], TimeLimits::default(), stop)?;
        let measured = names.into_iter().zip(together.results).map(|(name, result)| {
            let outcome = result?.outcome;
            let per_s =
                outcome.throughput().ok_or_else(|| LabError::OtherOutcome { machine: name.clone() })?;
            Ok(TenantMeasured { name, iops: per_s, latency_ns: outcome.latency_ns() })
        });
        measured.collect()
    }
}

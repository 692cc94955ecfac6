//! Tenants: machines under a load of their own while operations go on around them.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_lab::{Assignment, LabError, Machine, TimeLimits, measure_together};
use virtbench_record::TenantMeasured;
use virtbench_workload::{AccessLine, AccessSpec, LoadSpec};

use crate::course::nanoseconds;
use crate::environments::MadeEnvironments;
use crate::study_error::StudyError;

/// Block of a tenant's operations, in bytes, and its shares of reads and of random seeks, in percent.
const LOAD: (u64, f64, f64) = (4096, 70.0, 100.0);

/// Machines that run, each with a disk of its own.
pub struct Tenants {
    // Before their disks go.
    machines: Vec<Box<dyn Machine>>,
    _made: MadeEnvironments,
    size_bytes: u64,
}

impl Tenants {
    /// Starts a machine in each environment, whose disks have so many bytes.
    ///
    /// # Errors
    /// One does not start.
    pub fn start(mut made: MadeEnvironments, size_bytes: u64) -> Result<Self, StudyError> {
        let started = made.environments.iter_mut().map(|environment| environment.start());
        let mut machines = started.collect::<Result<Vec<_>, LabError>>()?;
        for machine in &mut machines {
            let name = machine.name().to_owned();
            let target = machine.make_target(&mut |_, _| true);
            target.map_err(|source| LabError::Machine { machine: name, source })?;
        }
        Ok(Self { machines, _made: made, size_bytes })
    }

    /// What can be loaded from another thread.
    pub(super) fn lend(&mut self) -> Lent<'_> {
        Lent { machines: &mut self.machines, size_bytes: self.size_bytes }
    }
}

/// The machines of tenants, whose disks stay where they are.
pub(super) struct Lent<'a> {
    machines: &'a mut [Box<dyn Machine>],
    size_bytes: u64,
}

impl Lent<'_> {
    /// Applies the load to all at one moment, for so long.
    ///
    /// # Errors
    /// One fails, or `stop` was set.
    pub(super) fn load(
        self,
        length: Duration,
        seed: u64,
        stop: &AtomicBool,
    ) -> Result<Vec<TenantMeasured>, StudyError> {
        let (block, reads, randoms) = LOAD;
        let access = AccessSpec::single(AccessLine::new(block, reads, randoms));
        let spec = LoadSpec {
            outstanding: 1,
            ramp_ns: 0,
            time_ns: nanoseconds(length),
            seed,
            ..LoadSpec::new(access, self.size_bytes)
        };
        let names: Vec<String> = self.machines.iter().map(|machine| machine.name().to_owned()).collect();
        let assignments = self
            .machines
            .iter_mut()
            .map(|machine| Assignment { machine: machine.as_mut(), spec: spec.clone().into() });
        let together = measure_together(assignments.collect(), &[], TimeLimits::default(), stop)?;
        let measured = names.into_iter().zip(together.results).map(|(name, result)| {
            let outcome = result?.outcome.load().ok_or(LabError::OtherOutcome { machine: name.clone() })?;
            Ok(TenantMeasured { name, iops: outcome.total.iops, latency_ns: outcome.total.latency_ns })
        });
        measured.collect()
    }
}

//! The study of management operations as a user asks for it: a platform, a mix, and how operations arrive.

use std::path::Path;

use virtbench_operations::Mix;
use virtbench_record::{OperationKind, OperationsLoad, OperationsPlan};
use virtbench_workload::JobSpec;

use super::platform::{PlatformChoice, Tenants, tenant_job};
use super::run::OperationsStudy;
use super::schedule::{estimate_operations, mix_on};
use crate::environments::{FoundEnvironments, NamedEnvironment};
use crate::guests::{GuestChoice, GuestOptions};
use crate::runner::event::{Estimate, Event};
use crate::runner::run::{Experiment, Run, RunEnd};
use crate::studies::colocation::NamedJob;
use crate::study_error::StudyError;
use crate::user_files::read_user_file;

/// The least memory of a tenant that is booted, in bytes.
const TENANT_MEMORY: u64 = 128 << 20;
/// The largest mix, in bytes.
const MAX_MIX_BYTES: usize = 64 << 10;

/// The mix of the paper, or that in the file of this name.
///
/// # Errors
/// It cannot be read, or is invalid.
pub fn find_mix(name: &str) -> Result<Mix, StudyError> {
    if name == "paper" {
        return Ok(Mix::paper());
    }
    let refused = |why: &dyn std::fmt::Display| StudyError::input(format!("--mix {name}: {why}"));
    let text = read_user_file(Path::new(name)).map_err(|error| refused(&error))?;
    if text.len() > MAX_MIX_BYTES {
        return Err(refused(&"it is too large for a mix"));
    }
    Mix::parse(&text).map_err(|error| refused(&error))
}

/// What a study of management operations is asked to do.
#[derive(Debug, Clone)]
pub struct OperationsOptions {
    /// The platform, and what VMs there are made of.
    pub platform: PlatformChoice,
    /// Shares of the operations.
    pub mix: Mix,
    /// Whether what the platform cannot do is left out.
    pub leave_out: bool,
    /// How operations arrive.
    pub load: OperationsLoad,
    /// Numbers of VMs to begin with.
    pub vms: Vec<u32>,
    /// Measuring time at each number of VMs, in nanoseconds.
    pub time_ns: u64,
    /// Length of a piece, in nanoseconds.
    pub piece_ns: u64,
    /// Before the first piece at each number of VMs, in nanoseconds.
    pub ramp_ns: u64,
    /// The longest that an operation may take, in nanoseconds.
    pub limit_ns: u64,
    /// Operations in flight at once, at most.
    pub most_at_once: u32,
    /// Environments of the machines that have a load of their own meanwhile.
    pub tenants: Vec<String>,
    /// What these do, where it is not small random I/O.
    pub tenant_workload: Option<NamedJob>,
    /// The disk of each, in bytes.
    pub tenant_bytes: u64,
    /// Seed of every random choice.
    pub seed: u64,
}

impl OperationsOptions {
    /// Looks whether the platform's options go together, before anything is done.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), StudyError> {
        self.platform.check()
    }

    fn plan(&self, mix: &Mix, left_out: Vec<OperationKind>) -> OperationsPlan {
        let piece_ns = self.piece_ns.clamp(1, self.time_ns.max(1));
        OperationsPlan {
            platform: self.platform.address.clone(),
            destination: self.platform.destination.clone(),
            mix: mix.shares().clone(),
            left_out,
            vms: self.vms.clone(),
            load: self.load.clone(),
            pieces: u32::try_from(self.time_ns.div_ceil(piece_ns)).unwrap_or(u32::MAX),
            piece_ns,
            warm_ns: self.ramp_ns,
            clones: self.platform.clones.clone(),
            limit_ns: self.limit_ns,
            most_at_once: self.most_at_once,
            memory_bytes: self.platform.memory_bytes,
            disk_bytes: self.platform.disk_bytes,
            accelerator: self.platform.guests.accelerator_name(),
            seed: self.seed,
            tenants: self.tenants.clone(),
            tenant_workload: self.tenant_workload.as_ref().map(|job| job.name.clone()),
        }
    }

    /// The tenants' environments.
    fn named_tenants(&self) -> Result<Vec<NamedEnvironment>, StudyError> {
        if !self.tenants.is_empty() && matches!(self.load, OperationsLoad::Max { .. }) {
            let why = "--tenant: tenants are compared with and without operations at a rate, so give one instead of max";
            return Err(StudyError::input(why));
        }
        let named = self.tenants.iter().map(|text| NamedEnvironment::parse(text));
        named.collect::<Result<_, _>>().map_err(|error| StudyError::input(format!("--tenant {error}")))
    }

    /// Starts them, with disks beside the run folder where they are of this host.
    fn start_tenants(
        &self,
        named: &[NamedEnvironment],
        job: JobSpec,
        run: &mut Run<'_>,
    ) -> Result<Option<Tenants>, StudyError> {
        if named.is_empty() {
            return Ok(None);
        }
        let (stop, observer) = (run.stop, &mut *run.observer);
        let PlatformChoice { guests: GuestChoice { accelerator, kernel }, memory_bytes, .. } = &self.platform;
        let others = GuestOptions {
            memory_bytes: (*memory_bytes).max(TENANT_MEMORY),
            accelerator: *accelerator,
            kernel: kernel.clone(),
            ..GuestOptions::default()
        };
        let found = FoundEnvironments::find(named, &others, &mut |what| observer.event(Event::Remark(what)))?;
        let folder = run.out.parent().unwrap_or(run.out);
        let made =
            found.make((folder, "operations"), self.tenant_bytes, stop, &mut |what, done, total| {
                observer.event(Event::Making { what, done, total });
            })?;
        Tenants::start(made, job).map(Some)
    }
}

impl Experiment for OperationsOptions {
    const NAME: &'static str = "operations";

    /// Pieces and how long they take about.
    fn estimate(&self) -> Estimate {
        estimate_operations(&self.plan(&self.mix, Vec::new()))
    }

    fn run(&self, run: &mut Run<'_>) -> Result<RunEnd, StudyError> {
        self.check()?;
        let named = self.named_tenants()?;
        let job = tenant_job(self.tenant_workload.as_ref(), self.tenant_bytes)
            .map_err(|error| StudyError::input(format!("--tenant-workload: {error}")))?;
        let platform = self.platform.connect(run)?;
        let (mix, left_out) = mix_on(&*platform, &self.mix, self.leave_out)?;
        let mut tenants = self.start_tenants(&named, job, run)?;
        OperationsStudy { plan: self.plan(&mix, left_out) }.run(&*platform, tenants.as_mut(), run)
    }
}

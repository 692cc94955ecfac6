//! A job, from its preparation to its outcome.

use std::path::PathBuf;

use virtbench_engine::{Control, EngineError, Target, TargetError, TargetRequest, run};
use virtbench_record::{JobOutcome, TargetFacts, TargetKind};
use virtbench_workload::{JobSpec, LoadSpec};
use virtbench_workloads::{RunError, Storage, prepare};

use crate::block_device::{node, wait_for_disk};
use crate::protocol::{FailureKind, Job, TargetRef};

/// What the host is told when something fails.
type Failure = (FailureKind, String);

/// A job with everything it needs.
pub(crate) enum Prepared {
    /// A load and its open target.
    Load { spec: Box<LoadSpec>, target: Target },
    /// A workload with its memory and data.
    Workload(Box<virtbench_workloads::Prepared>),
}

impl Prepared {
    /// Opens the target, or makes a workload's data.
    pub(crate) fn new(job: &Job) -> Result<Self, Failure> {
        match &job.spec {
            JobSpec::Load(spec) => {
                let target = open(&job.target, spec).map_err(|message| (FailureKind::Target, message))?;
                Ok(Self::Load { spec: Box::new(spec.clone()), target })
            }
            JobSpec::Workload(spec) => {
                let place = spec.workload.needs_storage().then(|| place(&job.target)).transpose();
                let place = place.map_err(|message| (FailureKind::Target, message))?;
                let prepared = prepare(spec, place.as_ref()).map_err(|error| workload_failure(&error))?;
                Ok(Self::Workload(Box::new(prepared)))
            }
        }
    }

    /// The target as it was found, if there is one.
    pub(crate) fn target(&self) -> Option<TargetFacts> {
        match self {
            Self::Load { target, .. } => Some(target.facts().clone()),
            Self::Workload(_) => None,
        }
    }

    /// Workers whose operations are counted.
    pub(crate) fn workers(&self) -> u32 {
        match self {
            Self::Load { spec, .. } => spec.workers,
            Self::Workload(_) => 1,
        }
    }

    /// Does it. The host may use the target as soon as it hears of the end: a device held exclusively
    /// is closed when this returns.
    pub(crate) fn run(
        self,
        control: &Control,
        at_ns: u64,
        on_measuring: impl FnOnce(u64),
    ) -> Result<JobOutcome, Failure> {
        match self {
            Self::Load { spec, target } => run(&spec, &target, control, at_ns, on_measuring)
                .map(|outcome| JobOutcome::Load(Box::new(outcome)))
                .map_err(|error| load_failure(&error)),
            Self::Workload(mut workload) => workload
                .run(control, at_ns, on_measuring)
                .map(|outcome| JobOutcome::Workload(Box::new(outcome)))
                .map_err(|error| workload_failure(&error)),
        }
    }
}

fn load_failure(error: &EngineError) -> Failure {
    let kind = match error {
        EngineError::Load(_) => FailureKind::Request,
        EngineError::Misfit(_) => FailureKind::Target,
        EngineError::Ledger(_) | EngineError::Resource { .. } => FailureKind::Engine,
    };
    (kind, error.to_string())
}

fn workload_failure(error: &RunError) -> Failure {
    let kind = match error {
        RunError::Workload(_) => FailureKind::Request,
        RunError::Storage(_) => FailureKind::Target,
        RunError::Misfit(_) | RunError::Resource { .. } => FailureKind::Engine,
    };
    (kind, error.to_string())
}

fn place(target: &TargetRef) -> Result<Storage, String> {
    Ok(match target {
        TargetRef::Path(path) => Storage::Path(PathBuf::from(path)),
        TargetRef::Disk { name_prefix } => Storage::Disk(node(&wait_for_disk(name_prefix)?)),
        TargetRef::Device { path, .. } => {
            return Err(format!("workloads keep files in a folder, not on {path}"));
        }
    })
}

fn open(target: &TargetRef, spec: &LoadSpec) -> Result<Target, String> {
    let (path, allow_overwrite) = match target {
        TargetRef::Path(path) => (PathBuf::from(path), false),
        TargetRef::Device { path, may_overwrite } => (PathBuf::from(path), *may_overwrite),
        // Whatever disk a guest was given was made for it.
        TargetRef::Disk { name_prefix } => (node(&wait_for_disk(name_prefix)?), true),
    };
    let request = TargetRequest {
        path,
        size_bytes: None,
        direct: spec.direct,
        reads: spec.access.reads(),
        writes: spec.access.writes(),
        allow_overwrite,
    };
    let opened = Target::open(&request, |_, _| true).map_err(|error| match (target, error) {
        (TargetRef::Device { path, .. }, TargetError::Foreign(_)) => format!(
            "this load writes, which destroys what is on {path}: read only (--read 100), or allow it in the address, as in \
             device=...&overwrite=allow"
        ),
        (_, error) => error.to_string(),
    })?;
    match target {
        TargetRef::Device { path, .. } if opened.facts().kind != TargetKind::BlockDevice => {
            Err(format!("{path} is no device: for loads on a file leave device= out"))
        }
        _ => Ok(opened),
    }
}

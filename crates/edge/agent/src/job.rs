//! A job, from its preparation to its outcome.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use virtbench_classics::{ClassicError, Place, prepare};
use virtbench_engine::{Control, EngineError, Target, TargetRequest, run};
use virtbench_record::{JobOutcome, TargetFacts};
use virtbench_workload::{JobSpec, LoadSpec};

use crate::protocol::{FailureKind, Job, TargetRef};

/// How long a guest's disk may take to appear.
const DISK_LIMIT: Duration = Duration::from_secs(10);

/// What the host is told when something fails.
type Failure = (FailureKind, String);

/// A job with everything it needs.
pub(crate) enum Prepared {
    /// A load and its open target.
    Load { spec: Box<LoadSpec>, target: Target },
    /// A workload with its memory and data.
    Workload(Box<virtbench_classics::Prepared>),
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
        EngineError::Resource { .. } => FailureKind::Engine,
    };
    (kind, error.to_string())
}

fn workload_failure(error: &ClassicError) -> Failure {
    let kind = match error {
        ClassicError::Workload(_) => FailureKind::Request,
        ClassicError::Storage(_) => FailureKind::Target,
        ClassicError::Misfit(_) | ClassicError::Resource { .. } => FailureKind::Engine,
    };
    (kind, error.to_string())
}

fn place(target: &TargetRef) -> Result<Place, String> {
    Ok(match target {
        TargetRef::Path(path) => Place::Path(PathBuf::from(path)),
        TargetRef::Disk { name_prefix } => Place::Disk(wait_for_disk(name_prefix)?),
    })
}

fn open(target: &TargetRef, spec: &LoadSpec) -> Result<Target, String> {
    let (path, allow_overwrite) = match target {
        TargetRef::Path(path) => (PathBuf::from(path), false),
        // Whatever disk a guest was given was made for it.
        TargetRef::Disk { name_prefix } => (wait_for_disk(name_prefix)?, true),
    };
    let request = TargetRequest {
        path,
        size_bytes: None,
        direct: spec.direct,
        reads: spec.access.reads(),
        writes: spec.access.writes(),
        allow_overwrite,
    };
    Target::open(&request, |_, _| true).map_err(|error| error.to_string())
}

/// The device node of the first disk whose name begins like this.
fn wait_for_disk(name_prefix: &str) -> Result<PathBuf, String> {
    let limit = Instant::now() + DISK_LIMIT;
    loop {
        let mut names: Vec<String> = fs::read_dir("/sys/block")
            .map_err(|error| format!("cannot list the guest's disks: {error}"))?
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        if let Some(name) = names.iter().find(|name| name.starts_with(name_prefix)) {
            return Ok(PathBuf::from("/dev").join(name));
        }
        if Instant::now() > limit {
            return Err(format!(
                "no disk named {name_prefix}* appeared within {} s; there are: {}",
                DISK_LIMIT.as_secs(),
                names.join(", ")
            ));
        }
        thread::sleep(Duration::from_millis(20));
    }
}

//! What can go wrong in the lab.

use thiserror::Error;
use virtbench_agent::protocol::FailureKind;

use crate::adapters::UnknownAdapter;
use crate::image::ImageError;
use crate::kernel::KernelError;
use crate::modules::ModuleError;
use crate::process::MachineError;
use crate::qemu::QemuError;
use crate::uml::UmlError;

/// What can go wrong in the lab. Each kind names what to do next, where something can be done.
#[derive(Debug, Error)]
pub enum LabError {
    /// No such adapter.
    #[error(transparent)]
    Adapter(#[from] UnknownAdapter),
    /// No kernel for guests.
    #[error(transparent)]
    Kernel(#[from] KernelError),
    /// Nothing to boot.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// No guest of User Mode Linux.
    #[error(transparent)]
    Uml(#[from] UmlError),
    /// No QEMU.
    #[error(transparent)]
    Qemu(#[from] QemuError),
    /// No way to execute guests: software emulation always works where QEMU and the kernel do.
    #[error("no guest boots here, not even under software emulation: {source}")]
    NoAccelerator {
        /// What happened under software emulation.
        source: MachineError,
    },
    /// A machine failed.
    #[error("{machine}: {source}")]
    Machine {
        /// Its name.
        machine: String,
        /// What happened.
        source: MachineError,
    },
    /// Jobs that are to run together do not have the same ramp-up and measuring time.
    #[error("what runs together needs the same ramp-up and measuring time: make --ramp and --time equal")]
    PhasesDiffer,
    /// An agent answered with the outcome of another kind of job: a defect.
    #[error(
        "{machine}: its agent did another kind of job than it was given; host and agent are not of one build"
    )]
    OtherOutcome {
        /// Its name.
        machine: String,
    },
    /// It was stopped before anything was measured.
    #[error("stopped before measuring began")]
    Stopped,
    /// The host's own figures cannot be read.
    #[error("the host's CPU use cannot be read from /proc/stat: {why}")]
    HostUse {
        /// Why not.
        why: String,
    },
}

impl LabError {
    /// Whether a machine is well, and what it was to work on cannot be used.
    #[must_use]
    pub fn is_of_target(&self) -> bool {
        matches!(self, Self::Machine { source: MachineError::Refused { kind: FailureKind::Target, .. }, .. })
    }

    /// That of a machine that failed, or was not waited for.
    pub(crate) fn of(machine: &str, source: MachineError) -> Self {
        match source {
            MachineError::Stopped => Self::Stopped,
            source => Self::Machine { machine: machine.to_owned(), source },
        }
    }
}

impl From<virtbench_host::Unreadable> for LabError {
    fn from(error: virtbench_host::Unreadable) -> Self {
        Self::HostUse { why: error.to_string() }
    }
}

impl From<ModuleError> for LabError {
    fn from(error: ModuleError) -> Self {
        Self::Image(error.into())
    }
}

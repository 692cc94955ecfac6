//! The seam: environments, the machines that are started in them, and what can go wrong.

use thiserror::Error;
use virtbench_agent::protocol::{FailureKind, Greeting, TargetRef};
use virtbench_record::{GuestFacts, HostFacts, SetupFacts};

use crate::adapters::UnknownAdapter;
use crate::connection::{Connection, ConnectionError};
use crate::cpu_times::FarTimes;
use crate::image::ImageError;
use crate::kernel::KernelError;
use crate::modules::ModuleError;
use crate::process::MachineError;
use crate::qemu::QemuError;
use crate::uml::UmlError;

/// Is told bytes written of bytes in all, and answers whether to go on.
pub type OnProgress<'a> = dyn FnMut(u64, u64) -> bool + 'a;

/// A kind of place where loads can be applied: natively, in a QEMU guest, on an existing machine.
pub trait Environment: Send {
    /// Its name in records, such as `native` or `vm`.
    fn name(&self) -> &str;

    /// Starts one machine and waits until its agent has greeted.
    ///
    /// # Errors
    /// It does not start, with its console's last lines.
    fn start(&mut self) -> Result<Box<dyn Machine>, LabError>;
}

/// A running machine with an agent in it. Dropping it kills it.
pub trait Machine: Send {
    /// Its name in errors.
    fn name(&self) -> &str;

    /// The conversation with its agent.
    fn connection(&mut self) -> &mut Connection;

    /// What its agent said of it.
    fn greeting(&self) -> &Greeting;

    /// What its loads are applied to.
    fn target(&self) -> TargetRef;

    /// Makes what its loads are applied to, where it is the machine itself that has to. `on_progress` is told bytes written of
    /// bytes in all, and answers whether to go on.
    ///
    /// # Errors
    /// It cannot be made, or was not to be.
    fn make_target(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), MachineError> {
        let _ = on_progress;
        Ok(())
    }

    /// The guest's facts; nothing where there is no guest.
    fn guest(&self) -> Option<GuestFacts>;

    /// What it is, where it is another machine than this host.
    fn facts(&self) -> Option<&HostFacts> {
        None
    }

    /// The accounts of its host's processors, where that is another machine and its hypervisor tells.
    fn far_times(&self) -> Option<FarTimes> {
        None
    }

    /// What a reader should know, such as a setting that could not be had.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether its clock is the host's own, so that it needs no synchronising.
    fn shares_host_clock(&self) -> bool;

    /// Its processes on this host, for accounting.
    fn processes(&self) -> Vec<u32>;

    /// Its servers' processes on this host, where its blocks come from one.
    fn servers(&self) -> Vec<u32> {
        Vec::new()
    }

    /// What its configuration was found to be; nothing where it is not one of several.
    fn setup(&self) -> Option<SetupFacts> {
        None
    }

    /// Has it use no processor until it is [woken](Self::wake). It cannot be talked to meanwhile.
    ///
    /// # Errors
    /// It does not obey.
    fn quiesce(&mut self) -> Result<(), MachineError> {
        Ok(())
    }

    /// Ends a [`quiesce`](Self::quiesce).
    ///
    /// # Errors
    /// It does not obey.
    fn wake(&mut self) -> Result<(), MachineError> {
        Ok(())
    }

    /// Whether it still runs; if not, why.
    ///
    /// # Errors
    /// It does not.
    fn check(&mut self) -> Result<(), MachineError>;

    /// Says what a broken conversation means, by all that is known of the machine.
    fn explain(&mut self, error: ConnectionError) -> MachineError;

    /// Ends it in good order, within a time limit.
    fn shut_down(self: Box<Self>);
}

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

//! The seam: environments, and the machines that are started in them.

use virtbench_agent::protocol::{Greeting, TargetRef};
use virtbench_record::{GuestFacts, HostFacts, SetupFacts};

use crate::connection::{Connection, ConnectionError};
use crate::error::LabError;
use crate::far_times::FarTimes;
use crate::process::MachineError;

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

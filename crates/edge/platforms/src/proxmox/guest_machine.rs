//! VMs of a cluster as machines of studies: made of a template, reached by ssh, and removed at the end.

use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::{
    Connection, ConnectionError, Environment, LabError, Machine, MachineError, OnProgress, Ssh, SshAddress,
};
use virtbench_lab::{Greeting, TargetRef};
use virtbench_proxmox::Limit;
use virtbench_record::{GuestFacts, HostFacts};

use super::failure::failure;
use super::guest_address::ProxmoxGuest;
use super::platform::{OnProxmox, ProxmoxOptions};
use crate::back_off;
use crate::failure::Failure;
use crate::platform::{Action, Platform};

/// How long a VM may take until its guest lets us in.
const READY_WITHIN: Duration = Duration::from_secs(600);
/// How long its removal may take.
const REMOVED_WITHIN: Duration = Duration::from_secs(120);
/// What a clone has is its template's.
const OF_TEMPLATE: ProxmoxOptions = ProxmoxOptions { memory_bytes: 0, disk_bytes: 0 };

/// A machine that is made when it is started.
#[derive(Debug)]
pub struct ProxmoxVm {
    name: String,
    guest: ProxmoxGuest,
    /// Bytes of the test file; none works in the folder itself.
    size_bytes: Option<u64>,
}

impl ProxmoxVm {
    /// One in whose guest a test file of so many bytes is made, or files are kept.
    #[must_use]
    pub fn new(name: &str, guest: ProxmoxGuest, size_bytes: Option<u64>) -> Self {
        Self { name: name.to_owned(), guest, size_bytes }
    }

    /// Logs in as soon as the guest lets us.
    fn reach(&self, address: &SshAddress) -> Result<Box<dyn Machine>, LabError> {
        let deadline = Instant::now() + READY_WITHIN;
        let mut pauses = back_off::pauses();
        loop {
            let mut ssh = match self.size_bytes {
                Some(bytes) => Ssh::new(&self.name, address.clone(), bytes),
                None => Ssh::for_files(&self.name, address.clone()),
            };
            let pause = pauses.next().unwrap_or(READY_WITHIN);
            match ssh.start() {
                Err(error) if is_not_up(&error) && Instant::now() + pause < deadline => thread::sleep(pause),
                done => return done,
            }
        }
    }
}

/// Whether nobody answers yet. A login that is refused stays so.
fn is_not_up(error: &LabError) -> bool {
    const WORDS: [&str; 5] = [
        "Connection refused",
        "Connection timed out",
        "Connection reset",
        "Connection closed",
        "No route to host",
    ];
    let LabError::Machine { source: MachineError::Unreachable { console, .. }, .. } = error else {
        return false;
    };
    console.iter().any(|line| WORDS.iter().any(|word| line.contains(word)))
}

/// A VM of a template that runs, and whose guest has an address. Dropping it removes the VM.
#[derive(Debug)]
pub struct ProxmoxClone {
    made: Made,
    ip: String,
}

impl ProxmoxClone {
    /// Makes it and waits until its guest tells an address.
    ///
    /// # Errors
    /// The cluster refuses or cannot be reached, or no address is told in time. What was made is removed.
    pub fn start(guest: &ProxmoxGuest) -> Result<Self, Failure> {
        let deadline = Instant::now() + READY_WITHIN;
        let made = Made(OnProxmox::connect(&guest.platform, OF_TEMPLATE, deadline)?);
        let platform = &made.0;
        let vm = format!("{}-1", platform.label());
        platform.create(&vm, deadline)?;
        platform.perform(&vm, &Action::PowerOn, deadline).result?;
        let limit = Limit::at(deadline);
        let ip = platform.server.guest_address(&platform.place(&vm)?, limit).map_err(failure)?;
        Ok(Self { made, ip })
    }

    /// The address of its guest.
    #[must_use]
    pub fn ip(&self) -> &str {
        &self.ip
    }
}

/// What a run has made on a cluster. Dropping it removes the VM.
#[derive(Debug)]
struct Made(OnProxmox);

impl Drop for Made {
    fn drop(&mut self) {
        if let Err(error) = self.0.remove_all(Instant::now() + REMOVED_WITHIN) {
            let address = &self.0.facts.address;
            tracing::warn!(%error, "a VM is left: virtbench sweep --platform {address} removes it");
        }
    }
}

impl Environment for ProxmoxVm {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let not_made = |why: String| LabError::Machine {
            machine: self.name.clone(),
            source: MachineError::Unreachable { why, console: Vec::new() },
        };
        let ProxmoxClone { made, ip } =
            ProxmoxClone::start(&self.guest).map_err(|error| not_made(error.message))?;
        let inner = self.reach(&self.guest.login(&ip).map_err(not_made)?)?;
        Ok(Box::new(ProxmoxMachine { inner, made }))
    }
}

/// A VM with an agent in its guest.
struct ProxmoxMachine {
    /// The guest as a machine that is reached by ssh. First, so that its agent ends before its VM does.
    inner: Box<dyn Machine>,
    made: Made,
}

impl Machine for ProxmoxMachine {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn connection(&mut self) -> &mut Connection {
        self.inner.connection()
    }

    fn greeting(&self) -> &Greeting {
        self.inner.greeting()
    }

    fn target(&self) -> TargetRef {
        self.inner.target()
    }

    fn make_target(&mut self, on_progress: &mut OnProgress<'_>) -> Result<(), MachineError> {
        self.inner.make_target(on_progress)
    }

    fn guest(&self) -> Option<GuestFacts> {
        None
    }

    fn facts(&self) -> Option<&HostFacts> {
        self.inner.facts()
    }

    fn notes(&self) -> Vec<String> {
        let own = self.made.0.facts.notes.iter().map(|note| format!("{}: {note}", self.name()));
        self.inner.notes().into_iter().chain(own).collect()
    }

    fn shares_host_clock(&self) -> bool {
        self.inner.shares_host_clock()
    }

    fn processes(&self) -> Vec<u32> {
        self.inner.processes()
    }

    fn check(&mut self) -> Result<(), MachineError> {
        self.inner.check()
    }

    fn explain(&mut self, error: ConnectionError) -> MachineError {
        self.inner.explain(error)
    }

    fn shut_down(self: Box<Self>) {
        let Self { inner, made } = *self;
        inner.shut_down();
        drop(made);
    }
}

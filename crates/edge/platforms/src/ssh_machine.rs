//! VMs that were made for a study, as machines that are reached by ssh, and removed at the end.

use std::time::{Duration, Instant};
use std::{fmt, thread};

use virtbench_lab::{
    Connection, ConnectionError, Environment, Greeting, LabError, Machine, MachineError, OnProgress, Ssh,
    SshAddress, TargetRef,
};
use virtbench_record::{GuestFacts, HostFacts};

use crate::platform::{Failure, Platform};
use crate::removal;

/// How long a VM may take until its guest lets us in.
pub(crate) const READY_WITHIN: Duration = Duration::from_secs(600);

/// How long its removal may take.
const REMOVED_WITHIN: Duration = Duration::from_secs(120);

/// What a run has made on a platform. Dropping it removes the VMs.
#[derive(Debug)]
pub(crate) struct MadeOn<P: Platform>(pub P);

impl<P: Platform> Drop for MadeOn<P> {
    fn drop(&mut self) {
        if let Err(error) = self.0.remove_all(Instant::now() + REMOVED_WITHIN) {
            let address = self.0.facts().address;
            tracing::warn!(%error, "a VM is left: virtbench sweep --platform '{address}' removes it");
        }
    }
}

/// A VM that runs, and whose guest has an address. Dropping it removes the VM.
#[derive(Debug)]
pub struct MadeVm {
    ip: String,
    notes: Vec<String>,
    _made: Box<dyn fmt::Debug + Send>,
}

impl MadeVm {
    pub(crate) fn new<P: Platform + Send + 'static>(made: MadeOn<P>, ip: String) -> Self {
        let notes = made.0.facts().notes.clone();
        Self { ip, notes, _made: Box::new(made) }
    }

    /// The address of its guest.
    #[must_use]
    pub fn ip(&self) -> &str {
        &self.ip
    }
}

/// Of what VMs are made, and how their guests are logged in to.
pub trait VmTemplate: fmt::Debug + Send {
    /// Makes a VM and waits until its guest has an address.
    ///
    /// # Errors
    /// The platform refuses or cannot be reached, or there is no address in time. What was made is removed.
    fn make(&self) -> Result<MadeVm, Failure>;

    /// The guest at this address.
    ///
    /// # Errors
    /// The login is impossible, in words.
    fn login(&self, ip: &str) -> Result<SshAddress, String>;
}

/// A machine that is made when it is started.
#[derive(Debug)]
pub struct TemplateVm<T> {
    name: String,
    template: T,
    /// Bytes of the test file; none works in the folder itself.
    size_bytes: Option<u64>,
}

impl<T: VmTemplate> TemplateVm<T> {
    /// One in whose guest a test file of so many bytes is made, or files are kept.
    #[must_use]
    pub fn new(name: &str, template: T, size_bytes: Option<u64>) -> Self {
        Self { name: name.to_owned(), template, size_bytes }
    }

    /// Logs in to the guest as soon as it lets us.
    fn reach(&self, address: &SshAddress) -> Result<Box<dyn Machine>, LabError> {
        let deadline = Instant::now() + READY_WITHIN;
        let mut pauses = removal::pauses();
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

impl<T: VmTemplate> Environment for TemplateVm<T> {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let not_made = |why: String| LabError::Machine {
            machine: self.name.clone(),
            source: MachineError::Unreachable { why, console: Vec::new() },
        };
        let made = self.template.make().map_err(|error| not_made(error.message))?;
        let address = self.template.login(made.ip()).map_err(not_made)?;
        Ok(Box::new(SshMachine { inner: self.reach(&address)?, made }))
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

/// A VM with an agent in its guest.
struct SshMachine {
    /// The guest as a machine that is reached by ssh. First, so that its agent ends before its VM does.
    inner: Box<dyn Machine>,
    made: MadeVm,
}

impl Machine for SshMachine {
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
        let own = self.made.notes.iter().map(|note| format!("{}: {note}", self.name()));
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

/// How the settings begin that are for the login to the guest.
const PREFIX: &str = "ssh-";

/// Where the agent works where no folder is named.
const FOLDER: &str = "/var/tmp/virtbench";

/// A login to whichever address the guest has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuestLogin {
    user: Option<String>,
    port: Option<u16>,
    /// Where the agent works.
    pub folder: String,
    config: Option<String>,
}

impl GuestLogin {
    /// Takes `ssh-user=`, `ssh-port=`, `ssh-folder=` and `ssh-config=` out of an address; with what is left of it.
    ///
    /// # Errors
    /// One of them makes no sense.
    pub fn take_from(text: &str) -> Result<(Self, String), String> {
        let (server, query) = text.split_once('?').unwrap_or((text, ""));
        let (login, others): (Vec<&str>, Vec<&str>) =
            query.split('&').filter(|one| !one.is_empty()).partition(|one| one.starts_with(PREFIX));
        let platform =
            if others.is_empty() { server.to_owned() } else { format!("{server}?{}", others.join("&")) };
        let mut guest = Self { user: None, port: None, folder: FOLDER.into(), config: None };
        for setting in login {
            guest.take(setting).map_err(|why| format!("{server}: {why}"))?;
        }
        // What is wrong with it is said before a VM is made.
        guest.at("192.0.2.1")?;
        Ok((guest, platform))
    }

    fn take(&mut self, setting: &str) -> Result<(), String> {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        match name {
            "ssh-user" if !value.is_empty() => self.user = Some(value.to_owned()),
            "ssh-port" => self.port = Some(value.parse().map_err(|_| format!("{setting}: no such port"))?),
            "ssh-folder" if value.starts_with('/') => value.clone_into(&mut self.folder),
            "ssh-config" if !value.is_empty() => self.config = Some(value.to_owned()),
            _ => {
                return Err(format!(
                    "{setting} is no setting of the login to a guest: ssh-user=NAME, ssh-port=N, ssh-folder=/FOLDER, ssh-config=FILE"
                ));
            }
        }
        Ok(())
    }

    /// The guest at this address.
    ///
    /// # Errors
    /// The login is impossible.
    pub fn at(&self, ip: &str) -> Result<SshAddress, String> {
        let user = self.user.as_ref().map_or_else(String::new, |user| format!("{user}@"));
        let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
        let port = self.port.map_or_else(String::new, |port| format!(":{port}"));
        let config = self.config.as_ref().map_or_else(String::new, |file| format!("?config={file}"));
        SshAddress::parse(&format!("ssh://{user}{host}{port}{}{config}", self.folder))
            .map_err(|error| error.to_string())
    }
}

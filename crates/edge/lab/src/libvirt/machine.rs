//! A domain with an agent in it, from its start to its end; one that does not go on is noticed.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};
use std::{io, thread};

use virtbench_agent::Console;
use virtbench_agent::protocol::{Greeting, PORT_NAME, ProtocolError, TargetRef};
use virtbench_libvirt::{Domain, ErrorKind, Hypervisor, LibvirtError, StartFlags, close_stream};
use virtbench_record::{GuestFacts, HostFacts};

use super::host::times;
use crate::connection::{Connection, ConnectionError};
use crate::cpu_times::FarTimes;
use crate::machine::Machine;
use crate::process::{MachineError, PANIC};
use crate::remote::Alive;

/// How long a domain that has hung up may take to end.
const END_LIMIT: Duration = Duration::from_secs(3);

/// How long libvirt may take to close a stream.
const CLOSE_LIMIT: Duration = Duration::from_secs(2);

/// How long it may take to power off.
const POWER_OFF_LIMIT: Duration = Duration::from_secs(10);

/// How often it is asked whether it has ended.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// A domain that runs for as long as this value is there.
#[derive(Debug)]
pub(super) struct Running {
    domain: Domain,
    console: Console,
    /// What it is talked with, to be closed before it ends: its console, and its agent's channel.
    streams: Vec<UnixStream>,
    /// libvirt refuses to have what runs go on, and what waits wait.
    waits: Waits,
    watch: Option<PauseWatch>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.close_streams();
        match self.domain.destroy() {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::NoDomain => {}
            Err(error) => tracing::warn!(%error, "the domain could not be ended"),
        }
    }
}

/// A domain whose agent has greeted.
pub(super) struct Booted {
    pub(super) running: Running,
    pub(super) connection: Connection,
    pub(super) greeting: Greeting,
    /// From its start to the greeting.
    pub(super) boot: Duration,
}

impl Running {
    /// Starts a domain and waits for its agent's greeting.
    pub(super) fn boot(hypervisor: &Hypervisor, xml: &str, limit: Duration) -> Result<Booted, MachineError> {
        let begun = Instant::now();
        // Its agent would take a channel that nobody has opened for a controller that is gone.
        let flags = StartFlags::PAUSED | StartFlags::ENDS_WITH_CONNECTION;
        let domain = hypervisor.start(xml, flags).map_err(|error| refused("started", &error))?;
        let waits = Waits::default();
        waits.set(true);
        let mut running =
            Self { domain, console: Console::default(), streams: Vec::new(), waits, watch: None };
        // Without a console a guest works as well; an error of its says less.
        match running.domain.open_console() {
            Ok(opened) => {
                running.streams.extend(opened.try_clone());
                running.console = Console::collect(opened).map_err(no_thread)?;
            }
            Err(error) => tracing::warn!(%error, "the domain has no console"),
        }
        let channel = running.domain.open_channel(PORT_NAME);
        let channel = channel.map_err(|error| refused("talked to", &error))?;
        running.streams.extend(channel.try_clone());
        let agent = channel.try_clone().map_err(no_thread)?;
        let mut connection = Connection::new(channel).map_err(no_thread)?;
        running.resume()?;
        let watch = PauseWatch::begin(running.domain.clone(), running.waits.clone(), agent);
        running.watch = Some(watch.map_err(no_thread)?);
        match connection.greet(limit) {
            Ok(greeting) => Ok(Booted { running, connection, greeting, boot: begun.elapsed() }),
            Err(error) => Err(running.explain(error)),
        }
    }

    fn suspend(&mut self) -> Result<(), MachineError> {
        if !self.waits.get() {
            self.waits.set(true);
            self.domain.suspend().map_err(|error| self.lost(&error))?;
        }
        Ok(())
    }

    fn resume(&mut self) -> Result<(), MachineError> {
        if self.waits.get() {
            self.domain.resume().map_err(|error| self.lost(&error))?;
            self.waits.set(false);
        }
        Ok(())
    }

    pub(super) fn xml(&self) -> Result<String, MachineError> {
        self.domain.xml().map_err(|error| self.lost(&error))
    }

    /// Waits for its end; whether it has ended.
    fn ended_within(&self, limit: Duration) -> Result<bool, LibvirtError> {
        let until = Instant::now() + limit;
        loop {
            match self.domain.is_running() {
                Ok(true) if Instant::now() < until => std::thread::sleep(LOOK_INTERVAL),
                Ok(running) => return Ok(!running),
                Err(error) if error.kind() == ErrorKind::NoDomain => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), MachineError> {
        match self.ended_within(Duration::ZERO) {
            Ok(false) => Ok(()),
            _ => Err(self.explain(ProtocolError::Closed.into())),
        }
    }

    /// Says what a broken conversation means.
    pub(super) fn explain(&self, error: ConnectionError) -> MachineError {
        match error {
            ConnectionError::Refused { kind, message } => return MachineError::Refused { kind, message },
            ConnectionError::Stopped => return MachineError::Stopped,
            _ => {}
        }
        if is_paused_by_others(&self.domain, &self.waits) {
            let words = self.domain.name().ok().map(|name| log_of(&name));
            return MachineError::Paused {
                state: "somebody paused the guest (paused)".into(),
                words,
                console: self.console.tail(),
            };
        }
        let hung_up =
            matches!(error, ConnectionError::Protocol(ProtocolError::Closed | ProtocolError::Io(_)));
        let ended = self.ended_within(if hung_up { END_LIMIT } else { Duration::ZERO });
        if !matches!(ended, Ok(false)) {
            self.console.settle(END_LIMIT);
        }
        let console = self.console.tail();
        tracing::warn!(%error, ?ended, "the conversation with a domain broke");
        match ended {
            _ if self.console.contains(PANIC) => MachineError::panicked(&self.console),
            Ok(true) => MachineError::Ended { what: "the domain", how: self.end(), console },
            Ok(false) => MachineError::Conversation { source: error, console },
            Err(error) => self.lost(&error),
        }
    }

    /// Closes the streams to it.
    fn close_streams(&mut self) {
        for stream in self.streams.drain(..) {
            if !close_stream(&stream, CLOSE_LIMIT) {
                tracing::warn!("a stream of a domain is still open after {CLOSE_LIMIT:?}");
            }
        }
    }

    /// Has its agent power it off, within a time limit. The agent waits for the channel to be closed.
    pub(super) fn power_off(&mut self, connection: &mut Connection) {
        let told = connection.shut_down().is_ok();
        self.close_streams();
        tracing::info!(told, "a domain powers off");
        if told {
            let _ = self.ended_within(POWER_OFF_LIMIT);
        }
    }

    fn end(&self) -> String {
        let name = self.domain.name().unwrap_or_default();
        format!("ended ({})", log_of(&name))
    }

    /// What it means that libvirt does not do as it was told.
    fn lost(&self, error: &LibvirtError) -> MachineError {
        if error.kind() != ErrorKind::Connection {
            let (what, console) = ("the domain", self.console.tail());
            return MachineError::Ended { what, how: format!("could not be reached ({error})"), console };
        }
        MachineError::Ended {
            what: "the connection to libvirt",
            how: format!("was lost ({error}; the next run there removes what is left)"),
            console: self.console.tail(),
        }
    }
}

fn log_of(domain: &str) -> String {
    format!("/var/log/libvirt/qemu/{domain}.log on its host may say more")
}

fn refused(what: &str, error: &LibvirtError) -> MachineError {
    MachineError::Unreachable { why: format!("the domain cannot be {what}: {}", error), console: Vec::new() }
}

fn no_thread(source: std::io::Error) -> MachineError {
    MachineError::Start { program: "libvirt".into(), source }
}

pub(super) struct LibvirtMachine {
    pub(super) name: String,
    pub(super) running: Running,
    pub(super) connection: Connection,
    pub(super) greeting: Greeting,
    pub(super) disk_prefix: &'static str,
    pub(super) hypervisor: Hypervisor,
    pub(super) facts: HostFacts,
    pub(super) guest: GuestFacts,
    pub(super) notes: Vec<String>,
    pub(super) _alive: Alive,
}

impl Machine for LibvirtMachine {
    fn name(&self) -> &str {
        &self.name
    }

    fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    fn target(&self) -> TargetRef {
        TargetRef::Disk { name_prefix: self.disk_prefix.to_owned() }
    }

    fn guest(&self) -> Option<GuestFacts> {
        Some(self.guest.clone())
    }

    fn facts(&self) -> Option<&HostFacts> {
        Some(&self.facts)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn shares_host_clock(&self) -> bool {
        false
    }

    fn processes(&self) -> Vec<u32> {
        Vec::new()
    }

    fn far_times(&self) -> Option<FarTimes> {
        times(&self.hypervisor, self.facts.processors).ok()
    }

    fn quiesce(&mut self) -> Result<(), MachineError> {
        self.running.suspend()
    }

    fn wake(&mut self) -> Result<(), MachineError> {
        self.running.resume()
    }

    fn check(&mut self) -> Result<(), MachineError> {
        self.running.check()
    }

    fn explain(&mut self, error: ConnectionError) -> MachineError {
        self.running.explain(error)
    }

    fn shut_down(mut self: Box<Self>) {
        self.running.power_off(&mut self.connection);
    }
}

/// How often the domain is looked at: a call to libvirt's server, which costs the guest nothing.
const INTERVAL: Duration = Duration::from_secs(1);

/// Whether a domain waits because this process wants it to.
#[derive(Debug, Clone, Default)]
pub(super) struct Waits(Arc<AtomicBool>);

impl Waits {
    pub(super) fn get(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    pub(super) fn set(&self, waits: bool) {
        self.0.store(waits, Ordering::SeqCst);
    }
}

/// A thread that hangs up on the agent of a domain once that is paused by somebody else, QEMU among others, until this value is dropped.
#[derive(Debug)]
pub(super) struct PauseWatch {
    _stop: mpsc::Sender<()>,
}

impl PauseWatch {
    /// # Errors
    /// No thread can be started.
    pub(super) fn begin(domain: Domain, waits: Waits, agent: UnixStream) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel::<()>();
        thread::Builder::new().name("paused".into()).spawn(move || {
            let mut seen = 0;
            while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                seen = if is_paused_by_others(&domain, &waits) { seen + 1 } else { 0 };
                // Once may be a look between this process's own word and the domain's answer.
                if seen >= 2 {
                    let _ = agent.shutdown(Shutdown::Both);
                    return;
                }
            }
        })?;
        Ok(Self { _stop: stop })
    }
}

/// Whether a domain waits although this process wants it to go on.
pub(super) fn is_paused_by_others(domain: &Domain, waits: &Waits) -> bool {
    !waits.get() && domain.runs_and_waits() == Ok((true, true)) && !waits.get()
}

//! An appliance that runs.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use virtbench_agent::PATH_FLOW;
use virtbench_agent::protocol::FailureKind;
use virtbench_agent::protocol::appliance::{
    ApplianceReply, ApplianceRequest, ApplianceState, CommandOrder, MountOrder, ServiceEnd, ServiceFailure,
};
use virtbench_recipe::Init;
use virtbench_record::{ApplianceFacts, CommandEnd, PathCost, ServiceReady};

use super::error::ApplianceError;
use super::machine::Machine;
use super::network::{Network, Reach, measure_path};
use super::spec::{ApplianceSpec, Place};
use super::start;
use super::start::NativeAppliance;
use crate::connection::{ConnectionError, unexpected};
use crate::guest_disk::of_block_device;

/// How long the agent may take for what takes no time, under emulation on a busy host.
const ANSWER_LIMIT: Duration = Duration::from_secs(30);
/// How long it may take to put the root together: a journal may have to be replayed.
const MOUNT_LIMIT: Duration = Duration::from_secs(120);
/// Beyond the time that services and commands have.
const GRACE: Duration = Duration::from_secs(30);
/// What the root's own init may take beside that, to start and to end.
const INIT_LIMIT: Duration = Duration::from_secs(150);
/// How long it may take to measure a path.
const PATH_LIMIT: Duration = Duration::from_secs(60);
/// The port on which the path is measured, or one of the next.
const PATH_PORT: u16 = 47_000;
/// Lines and characters of a log that are believed.
const LOG_LINES: usize = 20;
const LINE_CHARACTERS: usize = 300;

/// An appliance that runs. Dropping it ends everything at once; [`stop`](Self::stop) does it in good order.
#[derive(Debug)]
pub struct RunningAppliance {
    name: String,
    machine: Machine,
    spec: ApplianceSpec,
    reach: Reach,
    addresses: BTreeMap<u16, SocketAddr>,
    path_port: u16,
    begun: Instant,
    facts: ApplianceFacts,
}

impl RunningAppliance {
    /// Starts the machine and puts the root together, without a service: so that commands can prepare the data.
    ///
    /// # Errors
    /// It cannot; nothing is left behind.
    pub fn open(spec: &ApplianceSpec) -> Result<Self, ApplianceError> {
        let mut spec = spec.placed();
        spec.check()?;
        if matches!((&spec.place, &spec.network), (Place::Uml(_), Network::User)) {
            spec.network = start::own_network()?;
        }
        let begun = Instant::now();
        let ports = spec.recipe.ports();
        let used = match &spec.network {
            Network::User => 0,
            Network::Namespace(namespace) => namespace.next_user(),
        };
        let path_port = (PATH_PORT + used..).find(|port| !ports.contains(port)).unwrap_or(PATH_PORT);
        let named = |notes: &[String]| notes.iter().map(|note| format!("{}: {note}", spec.name)).collect();
        let (machine, order, notes) = match &spec.place {
            Place::Native => {
                let (native, order) = NativeAppliance::start(&spec)?;
                let notes = named(&native.limits.notes);
                (Machine::Native(Box::new(native)), order, notes)
            }
            Place::Guest(place) => {
                let (guest, order, notes) = start::boot_guest(&spec, place, path_port)?;
                (Machine::Guest(Box::new(guest)), order, notes)
            }
            Place::Uml(place) => {
                let (guest, order, notes) = start::boot_uml(&spec, place)?;
                (Machine::Uml(Box::new(guest)), order, notes)
            }
            Place::Domain(place) => {
                let failed = |source| ApplianceError::Machine { name: spec.name.clone(), source };
                let (domain, order) = start::boot_domain(&spec, place).map_err(failed)?;
                (Machine::Domain(Box::new(domain)), order, Vec::new())
            }
            Place::Ssh(place) => {
                let failed = |source| ApplianceError::Machine { name: spec.name.clone(), source };
                let (appliance, order) = start::start(&spec, place).map_err(failed)?;
                let notes = named(&appliance.enclosed.notes);
                (Machine::Enclosed(Box::new(appliance)), order, notes)
            }
        };
        let facts = machine.facts(&spec, notes);
        let mut appliance = Self {
            name: spec.name.clone(),
            reach: machine.reach(&spec.network),
            addresses: BTreeMap::new(),
            machine,
            spec,
            path_port,
            begun,
            facts,
        };
        let address = appliance.mount(order)?;
        appliance.find_addresses(address)?;
        Ok(appliance)
    }

    /// Starts everything: machine, root, services, and what measures the path, which is measured then.
    ///
    /// # Errors
    /// It cannot; nothing is left behind.
    pub fn start(spec: &ApplianceSpec) -> Result<Self, ApplianceError> {
        let mut appliance = Self::start_unmeasured(spec)?;
        appliance.measure_path()?;
        Ok(appliance)
    }

    /// Starts machine, root and services. The path is not measured: others share it, or what it costs is in what is measured.
    ///
    /// # Errors
    /// It cannot; nothing is left behind.
    pub fn start_unmeasured(spec: &ApplianceSpec) -> Result<Self, ApplianceError> {
        let mut appliance = Self::open(spec)?;
        appliance.start_services()?;
        Ok(appliance)
    }

    /// Returns the address that its interface has got.
    fn mount(&mut self, order: MountOrder) -> Result<Option<Ipv4Addr>, ApplianceError> {
        self.ask(ApplianceRequest::Mount(Box::new(order)))?;
        let address = match self.hear("put its root together", MOUNT_LIMIT)? {
            ApplianceReply::Mounted { address } => address.map(Ipv4Addr::from),
            other => return Err(self.failed(unexpected("put its root together", &other))),
        };
        self.ask(ApplianceRequest::ServePath { port: self.path_port })?;
        match self.hear("serve its path", ANSWER_LIMIT)? {
            ApplianceReply::PathServed => Ok(address),
            other => Err(self.failed(unexpected("serve its path", &other))),
        }
    }

    /// Starts its services, each once the one before is ready.
    ///
    /// # Errors
    /// One does not start or get ready, with the end of its log. It can still be asked for logs then.
    pub fn start_services(&mut self) -> Result<(), ApplianceError> {
        let services = self.spec.recipe.services.clone();
        let limit: u64 = services.iter().map(|service| service.ready_within).fold(0, u64::saturating_add);
        let until = Instant::now() + self.init_limit() + Duration::from_nanos(limit) + GRACE;
        self.ask(ApplianceRequest::Start(services))?;
        loop {
            let expected = "start its services";
            match self.hear(expected, until.saturating_duration_since(Instant::now()))? {
                ApplianceReply::Ready { service, took_ns } => {
                    self.facts.services.push(ServiceReady { service, ready_ns: took_ns });
                }
                ApplianceReply::Started => break,
                ApplianceReply::NotStarted(failure) => return Err(self.service_failed(failure)),
                other => return Err(self.failed(unexpected(expected, &other))),
            }
        }
        self.facts.ready_ns = nanoseconds(self.begun.elapsed());
        tracing::info!(
            name = self.name,
            ready_ms = self.begun.elapsed().as_millis(),
            "its services are ready"
        );
        Ok(())
    }

    /// Its name in errors.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Where clients have to be.
    #[must_use]
    pub fn reach(&self) -> Reach {
        self.reach.clone()
    }

    /// Where clients connect to for a port of the recipe's.
    #[must_use]
    pub fn address(&self, port: u16) -> Option<SocketAddr> {
        self.addresses.get(&port).copied()
    }

    /// A connection to its screen, by VNC, from its hypervisor; nothing where it has none.
    ///
    /// # Errors
    /// The VM has no more connections to give.
    pub fn connect_to_screen(&mut self) -> Option<io::Result<TcpStream>> {
        match &mut self.machine {
            Machine::Guest(guest) if self.spec.recipe.screen => Some(guest.connect_to_screen()),
            _ => None,
        }
    }

    /// The ports of its services, in their order.
    #[must_use]
    pub fn ports(&self) -> Vec<u16> {
        self.spec.recipe.ports()
    }

    /// What it stands on and how long it took, with what the path costs once that was measured.
    #[must_use]
    pub fn facts(&self) -> &ApplianceFacts {
        &self.facts
    }

    /// Its processes on this host, for accounting: the agent's natively, else QEMU's, or the kernel's first, then
    /// those of its address spaces and the servers of its disks; nobody's where another machine runs it.
    #[must_use]
    pub fn processes(&self) -> Vec<u32> {
        match &self.machine {
            Machine::Native(native) => vec![native.agent.process.id()],
            Machine::Guest(guest) => vec![guest.process_id()],
            Machine::Uml(guest) => guest.process_ids().into_iter().chain(guest.server_ids()).collect(),
            Machine::Domain(_) | Machine::Enclosed(_) => Vec::new(),
        }
    }

    /// Processor time of the thread that carries its network, in nanoseconds: QEMU's first, where a guest has a network of QEMU's.
    /// Nothing natively, where the sender does the work.
    #[must_use]
    pub fn network_thread_ns(&self) -> Option<u64> {
        let Machine::Guest(guest) = &self.machine else { return None };
        let id = guest.process_id();
        let account = std::fs::read_to_string(format!("/proc/{id}/task/{id}/schedstat")).ok()?;
        account.split_whitespace().next()?.parse().ok()
    }

    /// Reads and writes of the disk of its data that were completed so far, counted on this host.
    ///
    /// # Errors
    /// It has no data, or they are not counted.
    pub fn data_operations(&mut self) -> io::Result<u64> {
        let nothing = || io::Error::new(io::ErrorKind::NotFound, "it has no disk of data");
        match &mut self.machine {
            Machine::Native(native) => of_block_device(native.data.as_deref().ok_or_else(nothing)?),
            Machine::Guest(_) if self.spec.data.is_none() => Err(nothing()),
            Machine::Guest(guest) => guest.disk_operations(1),
            // The server of its disk does not count, a block device does.
            Machine::Uml(_) => of_block_device(self.spec.data.as_deref().ok_or_else(nothing)?),
            Machine::Domain(_) | Machine::Enclosed(_) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "its machine is not asked for them"))
            }
        }
    }

    /// Where its agent answers measurements of the path to it.
    #[must_use]
    pub fn path_address(&self) -> Option<SocketAddr> {
        self.addresses.get(&self.path_port).copied()
    }

    /// Measures what the path costs now.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn measure_path(&mut self) -> Result<PathCost, ApplianceError> {
        let failed = |source| ApplianceError::Path { name: self.name.clone(), source };
        let address = self.path_address().ok_or_else(|| failed(io::ErrorKind::AddrNotAvailable.into()))?;
        let cost = measure_path(&self.reach, address, PATH_FLOW).map_err(failed)?;
        self.facts.path = Some(cost.clone());
        Ok(cost)
    }

    /// Measures what the path from it to another tier, which it knows as `name`, costs now.
    ///
    /// # Errors
    /// It has no such tier, or does not reach it.
    pub fn measure_path_to(&mut self, name: &str, other: &Self) -> Result<PathCost, ApplianceError> {
        let Some(address) = self.spec.tiers.address_of(name) else {
            let why = format!("it has no tier {name}: a defect");
            return Err(ApplianceError::Refused { name: self.name.clone(), why });
        };
        self.ask(ApplianceRequest::MeasurePath { address: address.octets(), port: other.path_port })?;
        match self.hear("measure a path", PATH_LIMIT)? {
            ApplianceReply::PathMeasured(cost) => Ok(cost),
            other => Err(self.failed(unexpected("measure a path", &other))),
        }
    }

    /// Its network, which another one can share.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.spec.network
    }

    /// The address by which others of its network reach it, where it shares one with them.
    #[must_use]
    pub fn shared_address(&self) -> Option<Ipv4Addr> {
        let is_shared = matches!(self.spec.network, Network::Namespace(_));
        match self.addresses.get(&self.path_port)?.ip() {
            IpAddr::V4(address) if is_shared || self.machine.is_elsewhere() => Some(address),
            _ => None,
        }
    }

    /// Runs a command in it to its end, as a user of its root. What it says is cut to its last 64 KiB.
    ///
    /// # Errors
    /// It cannot be started. How it ended is for the caller to judge.
    pub fn run(
        &mut self,
        words: &[String],
        user: &str,
        limit: Duration,
    ) -> Result<CommandEnd, ApplianceError> {
        let order =
            CommandOrder { words: words.to_vec(), user: user.to_owned(), limit_ns: nanoseconds(limit) };
        self.ask(ApplianceRequest::Run(order))?;
        match self.hear("run a command", limit + GRACE)? {
            ApplianceReply::Ran(end) => Ok(end),
            other => Err(self.failed(unexpected("run a command", &other))),
        }
    }

    /// Runs the commands by which the recipe fills the folder of its data, each at most for `limit`.
    ///
    /// # Errors
    /// One cannot be started, or fails, with what it said.
    pub fn prepare_data(&mut self, limit: Duration) -> Result<(), ApplianceError> {
        let Some(data) = self.spec.recipe.data.clone() else { return Ok(()) };
        for words in &data.prepare {
            let end = self.run(words, &data.user, limit)?;
            if let Some(trouble) = end.trouble() {
                let why = format!("{} {trouble}: {}", words.join(" "), end.output);
                return Err(ApplianceError::Refused { name: self.name.clone(), why });
            }
        }
        Ok(())
    }

    /// The end of what a service has written.
    ///
    /// # Errors
    /// There is no such service.
    pub fn log(&mut self, service: &str) -> Result<String, ApplianceError> {
        self.ask(ApplianceRequest::Log { service: service.to_owned() })?;
        match self.hear("show a log", ANSWER_LIMIT)? {
            ApplianceReply::Log { text } => Ok(text),
            other => Err(self.failed(unexpected("show a log", &other))),
        }
    }

    /// How it is: what runs, what the kernel has killed for want of memory, what room its data have.
    ///
    /// # Errors
    /// It does not answer.
    pub fn state(&mut self) -> Result<ApplianceState, ApplianceError> {
        self.ask(ApplianceRequest::State)?;
        match self.hear("say how it is", ANSWER_LIMIT)? {
            ApplianceReply::State(state) => Ok(state),
            other => Err(self.failed(unexpected("say how it is", &other))),
        }
    }

    /// What has gone wrong since it was asked last: a service or the machine has ended. It takes no time, so that it can be asked
    /// every now and then while something is measured.
    pub fn crashed(&mut self) -> Option<ApplianceError> {
        match self.machine.connection().next_crash() {
            Ok(Some(failure)) => Some(self.service_failed(failure)),
            Ok(None) => {
                let source = self.machine.check().err()?;
                Some(ApplianceError::Machine { name: self.name.clone(), source })
            }
            Err(error) => Some(self.failed(error)),
        }
    }

    /// Stops its services in reverse order, unmounts everything and ends the machine. Returns how the services ended, and what
    /// could not be done in good order.
    ///
    /// # Errors
    /// It does not answer; it is ended all the same.
    pub fn stop(mut self) -> Result<(Vec<ServiceEnd>, Vec<String>), ApplianceError> {
        let services = &self.spec.recipe.services;
        let limit: u64 = services.iter().map(|service| service.stop_within).fold(0, u64::saturating_add);
        self.ask(ApplianceRequest::Stop)?;
        let limit = self.init_limit() + Duration::from_nanos(limit) + GRACE;
        let ended = match self.hear("stop its services", limit)? {
            ApplianceReply::Stopped { services, notes } => (services, notes),
            other => return Err(self.failed(unexpected("stop its services", &other))),
        };
        self.machine.shut_down();
        Ok(ended)
    }

    fn find_addresses(&mut self, granted: Option<Ipv4Addr>) -> Result<(), ApplianceError> {
        let ports = self.spec.recipe.ports().into_iter().chain([self.path_port]);
        let here = Ipv4Addr::LOCALHOST;
        let all_at = |address: Ipv4Addr| ports.map(|port| (port, (address, port).into())).collect();
        self.addresses = match (&mut self.machine, &self.spec.network, granted) {
            (Machine::Guest(guest), Network::User, _) => {
                let forwarded = guest.forwarded_ports();
                let forwarded = forwarded
                    .map_err(|source| ApplianceError::Machine { name: self.name.clone(), source })?;
                forwarded.into_iter().map(|(port, to)| (port, (here, to).into())).collect()
            }
            (Machine::Native(_), ..) => all_at(here),
            (_, _, Some(address)) => all_at(address),
            _ => all_at(here),
        };
        Ok(())
    }

    fn init_limit(&self) -> Duration {
        if self.spec.recipe.init == Init::Full { INIT_LIMIT } else { Duration::ZERO }
    }

    fn ask(&mut self, request: ApplianceRequest) -> Result<(), ApplianceError> {
        self.machine.connection().say(request).map_err(|error| self.failed(error))
    }

    fn hear(&mut self, expected: &'static str, limit: Duration) -> Result<ApplianceReply, ApplianceError> {
        self.machine.connection().hear(expected, limit).map_err(|error| self.failed(error))
    }

    fn failed(&mut self, error: ConnectionError) -> ApplianceError {
        match error {
            ConnectionError::Refused { kind: FailureKind::Appliance, message } => {
                ApplianceError::Refused { name: self.name.clone(), why: message }
            }
            error => ApplianceError::Machine { name: self.name.clone(), source: self.machine.explain(error) },
        }
    }

    /// An appliance's words are limited, and cannot command the user's terminal.
    fn service_failed(&self, failure: ServiceFailure) -> ApplianceError {
        let clean = |text: &str| text.chars().filter(|c| !c.is_control()).take(LINE_CHARACTERS).collect();
        let log = failure.log.iter().rev().take(LOG_LINES).rev().map(|line| clean(line)).collect();
        let failure = ServiceFailure { service: clean(&failure.service), why: clean(&failure.why), log };
        ApplianceError::Service { name: self.name.clone(), failure }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

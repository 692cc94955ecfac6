//! Both ends of a path, and what lies between them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use virtbench_agent::interface::{set_address, set_mtu, set_up};
use virtbench_agent::protocol::network::{JoinOrder, NetworkOrder, NetworkOutcome, Traffic};
use virtbench_record::{CrossingCost, HostUse};

use super::{End, EndMachine};
use crate::appliance::{ApplianceError, NetworkNamespace, Place, Reach, make_ethernet_pair};
use crate::guest::{Guest, GuestConfig};
use crate::guest_network::GuestNetwork;
use crate::remote::SshAddress;
use crate::uml::{UML_INTERFACE, UmlConfig, UmlGuest, UmlInterface, uml_processor};

/// The TCP and UDP port on which the far end answers, where it is free.
const PORT: u16 = 47_500;
/// Two ends of a cable; nobody routes to it.
const PAIR: [Ipv4Addr; 2] = [Ipv4Addr::new(10, 79, 0, 1), Ipv4Addr::new(10, 79, 0, 2)];
const PREFIX: u8 = 24;
/// What vhost is asked for.
const VHOST: &str = "/dev/vhost-net";

/// What lies between two ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathKind {
    /// Nothing: both are in one network, which has a loopback alone.
    Loopback,
    /// A pair of virtual Ethernet devices between two networks of this host: no guest.
    Pair,
    /// QEMU's user-mode network, from this host to a guest.
    User,
    /// A bridge and a tap device, from this host to a guest.
    Tap {
        /// Whether the host's kernel carries frames, and not QEMU.
        vhost: bool,
    },
    /// A bridge and two tap devices, from one guest to another.
    Guests {
        /// Whether the host's kernel carries frames, and not QEMU.
        vhost: bool,
    },
}

/// A guest at an end.
#[derive(Debug, Clone)]
pub struct PathGuest {
    /// What it runs in: a guest of QEMU or of User Mode Linux whose image has drivers of networks.
    pub place: Place,
    /// Processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
}

/// Processors of the host that each end is held to; every one where there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EndProcessors {
    /// The end that sends requests.
    pub near: Vec<usize>,
    /// The end that answers.
    pub far: Vec<usize>,
}

impl EndProcessors {
    /// One for the near end, and the next ones for a far end of so many, as far as the host has some.
    #[must_use]
    pub fn apart(vcpus: u32) -> Self {
        let allowed = crate::usable_processors().unwrap_or_default();
        let near = crate::processors_in_turn(&allowed, 0, 1);
        let rest: Vec<usize> = allowed.iter().copied().filter(|one| !near.contains(one)).collect();
        let rest = if rest.is_empty() { allowed } else { rest };
        Self { near, far: crate::processors_in_turn(&rest, 0, vcpus) }
    }
}

/// What was measured of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficMeasured {
    /// At the end that sends requests.
    pub outcome: NetworkOutcome,
    /// The host's processors meanwhile, those of guests included.
    pub host: Option<HostUse>,
}

/// A path that is there. Dropping it ends its machines; nothing of it is left behind.
#[derive(Debug)]
pub struct NetworkPath {
    near: End,
    far: End,
    address: Ipv4Addr,
    port: u16,
    datagram_port: u16,
    /// What a reader of results should know.
    notes: Vec<String>,
    /// Whether this host's processors do all of the work.
    is_on_one_host: bool,
}

/// Why QEMU cannot have the host's kernel carry its frames; nothing where it can.
#[must_use]
pub fn vhost_device() -> Option<String> {
    let open = std::fs::OpenOptions::new().read(true).write(true).open(Path::new(VHOST));
    open.err().map(|error| format!("{VHOST}: {error}"))
}

impl NetworkPath {
    /// Starts both ends, and has the far one answer. `mtu` is the largest packet, in bytes. A path without a guest ignores `guest`.
    ///
    /// # Errors
    /// Namespaces cannot be made, a guest does not boot, or its platform has no such network.
    pub fn open(
        kind: PathKind,
        mtu: u32,
        guest: &PathGuest,
        on: &EndProcessors,
    ) -> Result<Self, ApplianceError> {
        match kind {
            PathKind::Loopback => Self::loopback(on),
            PathKind::Pair => Self::pair(mtu, on),
            PathKind::User => Self::user(guest, on),
            PathKind::Tap { vhost } => Self::tap(mtu, guest, vhost, on),
            PathKind::Guests { vhost } => Self::guests(mtu, guest, vhost, on),
        }
    }

    /// A path between two machines that are there: this host and one over ssh, or two over ssh. The far one answers on a port of its
    /// own network meanwhile.
    ///
    /// # Errors
    /// One cannot be reached by ssh, or the far one has no IPv4 address.
    pub fn between(near: Option<&SshAddress>, far: &SshAddress) -> Result<Self, ApplianceError> {
        let failed = |error: io::Error| refused(&format!("{}: {error}", far.host()));
        let name = far.network_name().map_err(failed)?;
        let all = (name.as_str(), PORT).to_socket_addrs().map_err(failed)?;
        let found = all.into_iter().find_map(|one| match one {
            SocketAddr::V4(address) => Some(*address.ip()),
            SocketAddr::V6(_) => None,
        });
        let address = found.ok_or_else(|| refused(&format!("{name} has no IPv4 address")))?;
        let far = End::remote("the far machine", far)?;
        let near = match near {
            Some(near) => End::remote("the near machine", near)?,
            None => End::native("this host's end", &Reach::here(), &[])?,
        };
        let path = Self::of(near, far, address, None, Vec::new())?;
        Ok(Self { is_on_one_host: false, ..path })
    }

    fn loopback(on: &EndProcessors) -> Result<Self, ApplianceError> {
        let network = NetworkNamespace::new()?;
        let near = End::native("the near end", &Reach::of(&network), &on.near)?;
        let far = End::native("the far end", &Reach::of(&network), &on.far)?;
        Self::of(near, far, Ipv4Addr::LOCALHOST, None, Vec::new())
    }

    fn pair(mtu: u32, on: &EndProcessors) -> Result<Self, ApplianceError> {
        let (here, there) = (NetworkNamespace::new()?, NetworkNamespace::new()?);
        let failed =
            |source| ApplianceError::Network { action: "there is no pair of Ethernet devices", source };
        let [near_address, far_address] = PAIR;
        let end = there.own.descriptor().map_err(failed)?;
        let make = || {
            make_ethernet_pair("near", "far", &end)?;
            start("near", near_address, mtu)
        };
        here.within(make).and_then(|made| made).map_err(failed)?;
        there.within(|| start("far", far_address, mtu)).and_then(|made| made).map_err(failed)?;
        let near = End::native("the near end", &Reach::of(&here), &on.near)?;
        let far = End::native("the far end", &Reach::of(&there), &on.far)?;
        Self::of(near, far, far_address, None, Vec::new())
    }

    fn user(guest: &PathGuest, on: &EndProcessors) -> Result<Self, ApplianceError> {
        let Place::Guest(_) = &guest.place else {
            return Err(refused("QEMU's user-mode network: only guests of QEMU have it"));
        };
        let network = GuestNetwork::User { ports: vec![PORT], datagram_ports: vec![PORT] };
        let mut far = boot("the guest", guest, &network, &on.far, None)?;
        let EndMachine::Guest(machine) = &mut far.machine else {
            return Err(refused("it is no guest of QEMU: a defect"));
        };
        let failed = |source| ApplianceError::Machine { name: "the guest".into(), source };
        let ports = machine.forwarded_ports().map_err(failed)?;
        let datagrams = machine.forwarded_datagram_ports().map_err(failed)?;
        let forwarded = |ports: &std::collections::BTreeMap<u16, u16>| {
            ports.get(&PORT).copied().ok_or_else(|| refused("QEMU forwards no port to the guest"))
        };
        let ports = (forwarded(&ports)?, forwarded(&datagrams)?);
        let near = End::native("the host's end", &Reach::here(), &on.near)?;
        Self::of(near, far, Ipv4Addr::LOCALHOST, Some(ports), Vec::new())
    }

    fn tap(mtu: u32, guest: &PathGuest, vhost: bool, on: &EndProcessors) -> Result<Self, ApplianceError> {
        let network = NetworkNamespace::with_mtu(mtu)?;
        let port = port_of(guest, &network, vhost)?;
        let (address, _) = port.address();
        let far = boot("the guest", guest, &port, &on.far, Some(mtu))?;
        let near = End::native("the host's end", &Reach::of(&network), &on.near)?;
        Self::of(near, far, address, None, notes(&port))
    }

    fn guests(mtu: u32, guest: &PathGuest, vhost: bool, on: &EndProcessors) -> Result<Self, ApplianceError> {
        let network = NetworkNamespace::with_mtu(mtu)?;
        let (near_port, far_port) = (port_of(guest, &network, vhost)?, port_of(guest, &network, vhost)?);
        let (address, _) = far_port.address();
        let far = boot("the second guest", guest, &far_port, &on.far, Some(mtu))?;
        let near = boot("the first guest", guest, &near_port, &on.near, Some(mtu))?;
        Self::of(near, far, address, None, notes(&near_port))
    }

    fn of(
        near: End,
        mut far: End,
        address: Ipv4Addr,
        forwarded: Option<(u16, u16)>,
        notes: Vec<String>,
    ) -> Result<Self, ApplianceError> {
        let served = far.serve(PORT)?;
        let (port, datagram_port) = forwarded.unwrap_or((served, served));
        Ok(Self { near, far, address, port, datagram_port, notes, is_on_one_host: true })
    }

    /// Measures what passes, after a ramp.
    ///
    /// # Errors
    /// The other end is not reached or hangs up, or a machine ended.
    pub fn measure(
        &mut self,
        traffic: Traffic,
        ramp: Duration,
        time: Duration,
    ) -> Result<TrafficMeasured, ApplianceError> {
        let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let order = NetworkOrder {
            address: self.address.octets(),
            port: self.port,
            datagram_port: self.datagram_port,
            traffic,
            ramp_ns: nanoseconds(ramp),
            time_ns: nanoseconds(time),
        };
        let (outcome, host) = self.near.measure(order)?;
        Ok(TrafficMeasured { outcome, host: host.filter(|_| self.is_on_one_host) })
    }

    /// What the far end pays for crossing into its kernel.
    #[must_use]
    pub fn crossing(&self) -> CrossingCost {
        self.far.crossing()
    }

    /// The far end's address, as the near end reaches it.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The processes of both ends on this host, in whose networks they are, where they are no guests.
    #[must_use]
    pub fn process_ids(&self) -> (Option<u32>, Option<u32>) {
        (self.near.process_id(), self.far.process_id())
    }

    /// What a reader of results should know.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Ends both machines in good order, within a time limit.
    pub fn close(self) {
        self.near.shut_down();
        self.far.shut_down();
    }
}

/// Called inside the interface's network.
fn start(interface: &str, address: Ipv4Addr, mtu: u32) -> io::Result<()> {
    set_mtu(interface, mtu)?;
    set_address(interface, address, PREFIX)?;
    set_up(interface)
}

/// A port of a network's bridge for a guest.
fn port_of(
    guest: &PathGuest,
    network: &Arc<NetworkNamespace>,
    vhost: bool,
) -> Result<GuestNetwork, ApplianceError> {
    match &guest.place {
        Place::Guest(_) if vhost => Ok(GuestNetwork::VhostTap(Arc::new(network.tap()?))),
        Place::Guest(_) => Ok(GuestNetwork::Tap(Arc::new(network.tap()?))),
        Place::Uml(_) if vhost => Err(refused("vhost: only guests of QEMU have it")),
        Place::Uml(_) => Ok(GuestNetwork::Tap(Arc::new(network.plain_tap()?))),
        Place::Native | Place::Domain(_) | Place::Ssh(_) => {
            Err(refused("no guest of QEMU or of User Mode Linux: a defect"))
        }
    }
}

fn notes(port: &GuestNetwork) -> Vec<String> {
    match port {
        GuestNetwork::Tap(tap) if tap.is_packet_socket() => {
            vec!["the guest's network is a packet socket: there is no tap device for this user".into()]
        }
        _ => Vec::new(),
    }
}

/// A guest that has joined its network.
fn boot(
    name: &'static str,
    guest: &PathGuest,
    network: &GuestNetwork,
    processors: &[usize],
    mtu: Option<u32>,
) -> Result<End, ApplianceError> {
    let failed = |source| ApplianceError::Machine { name: name.into(), source };
    let (machine, interface) = match (&guest.place, network) {
        (Place::Guest(place), network) => {
            let config = GuestConfig {
                vcpus: guest.vcpus,
                memory_bytes: guest.memory_bytes,
                boot_limit: place.boot_limit,
                processors: processors.to_vec(),
                network: Some(network.clone()),
                ..GuestConfig::new(place.accelerator)
            };
            let booted = Guest::boot(&place.qemu, &place.image, &config).map_err(failed)?;
            (EndMachine::Guest(Box::new(booted)), "eth0".to_owned())
        }
        (Place::Uml(place), GuestNetwork::Tap(tap)) => {
            let config = UmlConfig {
                memory_bytes: guest.memory_bytes,
                interfaces: vec![UmlInterface::Tap(Arc::clone(tap))],
                boot_limit: place.boot_limit,
                ..UmlConfig::new(uml_processor(processors))
            };
            let booted = UmlGuest::boot(&place.image, &config).map_err(failed)?;
            (EndMachine::Uml(Box::new(booted)), format!("{UML_INTERFACE}0"))
        }
        _ => return Err(refused("its platform has no such network: a defect")),
    };
    let mut end = End::new(name, machine);
    let (address, prefix) = network.address();
    end.join(JoinOrder { interface, address: address.octets(), prefix, mtu })?;
    Ok(end)
}

fn refused(why: &str) -> ApplianceError {
    ApplianceError::Refused { name: "the network".into(), why: why.to_owned() }
}

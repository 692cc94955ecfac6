//! How clients reach an appliance, and what the path to it costs by itself.

use std::fs::OpenOptions;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU16, Ordering};
use std::time::Duration;

use rustix::ioctl::Opcode;
use virtbench_agent::enclosure::OwnNetwork;
use virtbench_agent::interface::{
    InterfaceRequest, call, control_socket, interface_index, set_address, set_mtu, set_up,
};
use virtbench_agent::measure_path_cost;
use virtbench_record::PathCost;

use super::error::ApplianceError;
use super::ethernet_pair::make_packet_port;
use crate::guest_network::{PortKind, Tap};

/// Of `linux/sockios.h` and `linux/if_tun.h`.
const SIOCBRADDBR: Opcode = 0x89a0;

const SIOCBRADDIF: Opcode = 0x89a2;

const TUNSETIFF: Opcode = 0x4004_54ca;

/// A device of whole frames, without a header of its own.
const TAP_FLAGS: u16 = 0x0002 | 0x1000;

/// Before each frame there is virtio's header, by which a checksum or the cutting of a large frame is left to the other side.
const VIRTIO_HEADER: u16 = 0x4000;

/// What joins the tap devices of a namespace, and where clients are.
const BRIDGE: &str = "virtbench";

/// Nobody routes to it: it is known inside the namespace only.
const NETWORK: [u8; 3] = [10, 77, 0];

const PREFIX: u8 = 24;

/// Guests follow the bridge.
const FIRST_GUEST: u8 = 10;

const LAST_GUEST: u8 = 250;

/// Appliances that can use a network at once.
const MOST_USERS: u16 = 1000;

/// How clients reach an appliance.
#[derive(Debug, Clone, Default)]
pub enum Network {
    /// A guest by QEMU's user-mode network, at ports of the host's loopback. Needs no rights. Natively the loopback of a network
    /// namespace that is made for it.
    #[default]
    User,
    /// Through a network namespace of the run's own: a guest by a tap device, natively by the loopback there.
    Namespace(Arc<NetworkNamespace>),
}

/// A network of the run's own, of which the host's has nothing. The kernel takes it away with the last process and descriptor in
/// it, also after a kill.
#[derive(Debug)]
pub struct NetworkNamespace {
    pub(crate) own: OwnNetwork,
    next: AtomicU8,
    users: AtomicU16,
    /// The largest packet of its ports, in bytes; the kernel's own where nothing is said.
    mtu: Option<u32>,
}

impl NetworkNamespace {
    /// Makes one with its loopback.
    ///
    /// # Errors
    /// Root is needed.
    pub fn new() -> Result<Arc<Self>, ApplianceError> {
        Self::make(None)
    }

    /// One whose ports carry packets of up to `mtu` bytes.
    ///
    /// # Errors
    /// Root is needed.
    pub(crate) fn with_mtu(mtu: u32) -> Result<Arc<Self>, ApplianceError> {
        Self::make(Some(mtu))
    }

    fn make(mtu: Option<u32>) -> Result<Arc<Self>, ApplianceError> {
        let failed = |source| ApplianceError::Network { action: "there is no network namespace", source };
        let own = OwnNetwork::new().map_err(failed)?;
        Ok(Arc::new(Self { own, next: AtomicU8::new(FIRST_GUEST), users: AtomicU16::new(0), mtu }))
    }

    /// Has the calling thread, and threads and processes that it starts from now on, use this network.
    ///
    /// # Errors
    /// Root is needed.
    pub fn enter(&self) -> io::Result<()> {
        self.own.enter()
    }

    /// Does something on a thread in this network.
    ///
    /// # Errors
    /// Root is needed.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> io::Result<T> {
        self.own.within(act)
    }

    /// How many appliances have used it: those that run natively share its loopback, and so need ports of their own.
    pub(crate) fn next_user(&self) -> u16 {
        self.users.fetch_add(1, Ordering::Relaxed) % MOST_USERS
    }

    /// A tap device for one more guest of QEMU, on the bridge where all guests of this network and its clients are.
    pub(crate) fn tap(&self) -> Result<Tap, ApplianceError> {
        self.port(PortKind::Tap, |_| make_tap(TAP_FLAGS | VIRTIO_HEADER))
    }

    /// The same for a guest that knows no header before a frame, and by a packet socket where this process gets no tap devices.
    pub(crate) fn plain_tap(&self) -> Result<Tap, ApplianceError> {
        match self.port(PortKind::Tap, |_| make_tap(TAP_FLAGS)) {
            Err(ApplianceError::Network { source, .. }) if lacks_tap(&source) => {
                self.port(PortKind::Packet, |number| {
                    let name = format!("port{number}");
                    make_packet_port(&name).map(|socket| (socket, name))
                })
            }
            other => other,
        }
    }

    /// A port of the bridge that `make` makes inside this network, with the name of its device.
    fn port(
        &self,
        kind: PortKind,
        make: impl FnOnce(u8) -> io::Result<(OwnedFd, String)> + Send,
    ) -> Result<Tap, ApplianceError> {
        let failed = |source| ApplianceError::Network { action: kind.missing(), source };
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number > LAST_GUEST {
            return Err(failed(io::Error::other("the network is full")));
        }
        let join = || {
            make_bridge()?;
            let (file, name) = make(number)?;
            self.mtu.map_or(Ok(()), |mtu| set_mtu(&name, mtu))?;
            join_bridge(&name).map(|()| file)
        };
        let file = self.within(join).and_then(|made| made).map_err(failed)?;
        let [a, b, c] = NETWORK;
        Ok(Tap { file, kind, address: Ipv4Addr::new(a, b, c, number), prefix: PREFIX, number, mtu: self.mtu })
    }
}

/// Whether there is no tap device at all, or none for this user, as in containers.
fn lacks_tap(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)
}

/// Called inside the namespace; the first one makes it.
fn make_bridge() -> io::Result<()> {
    let (socket, mut bridge) = (control_socket()?, InterfaceRequest::new(BRIDGE)?);
    // SAFETY: SIOCBRADDBR takes a name, with which a `struct ifreq` begins.
    match unsafe { call::<SIOCBRADDBR>(socket.as_fd(), &mut bridge) } {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made?,
    }
    let [a, b, c] = NETWORK;
    set_address(BRIDGE, Ipv4Addr::new(a, b, c, 1), PREFIX)?;
    set_up(BRIDGE)
}

/// Called inside the namespace.
fn make_tap(flags: u16) -> io::Result<(OwnedFd, String)> {
    let tap = OpenOptions::new().read(true).write(true).open("/dev/net/tun")?;
    let mut request = InterfaceRequest::new("tap%d")?.with_u16(flags);
    // SAFETY: TUNSETIFF takes a `struct ifreq`.
    unsafe { call::<TUNSETIFF>(tap.as_fd(), &mut request) }?;
    Ok((tap.into(), request.name()))
}

/// Called inside the namespace.
fn join_bridge(name: &str) -> io::Result<()> {
    let (socket, index) = (control_socket()?, interface_index(name)?);
    // SAFETY: SIOCBRADDIF takes a `struct ifreq`.
    unsafe {
        call::<SIOCBRADDIF>(socket.as_fd(), &mut InterfaceRequest::new(BRIDGE)?.with_u32(index))?;
    }
    set_up(name)
}

/// Where a client has to be to reach an appliance. Cloning gives another handle.
#[derive(Debug, Clone)]
pub struct Reach(pub(crate) Option<Arc<NetworkNamespace>>);

impl Reach {
    /// In this network.
    #[must_use]
    pub fn of(network: &Arc<NetworkNamespace>) -> Self {
        Self(Some(Arc::clone(network)))
    }

    /// Where this process is.
    #[must_use]
    pub fn here() -> Self {
        Self(None)
    }

    /// Where other programs find that network while this process has it; nothing where this process is in it.
    #[must_use]
    pub fn path(&self) -> Option<String> {
        self.0.as_ref().map(|namespace| namespace.own.path())
    }

    /// Brings the calling thread there, with threads that it starts from now on. Sockets that it opens then stay there, whichever thread uses
    /// them.
    ///
    /// # Errors
    /// Root is needed.
    pub fn enter(&self) -> io::Result<()> {
        self.0.as_ref().map_or(Ok(()), |namespace| namespace.enter())
    }

    /// Does something on a thread there.
    ///
    /// # Errors
    /// Root is needed.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> io::Result<T> {
        match &self.0 {
            Some(namespace) => namespace.within(act),
            None => Ok(act()),
        }
    }

    /// Has a command run there.
    pub fn run_there(&self, command: &mut Command) {
        if let Some(namespace) = self.0.clone() {
            // SAFETY: between fork and exec there is one system call.
            unsafe { command.pre_exec(move || namespace.enter()) };
        }
    }
}

/// Measures the path to `address`, where an agent answers: bytes for `flow` in each direction.
///
/// # Errors
/// It cannot be reached, or does not answer.
pub fn measure_path(reach: &Reach, address: SocketAddr, flow: Duration) -> io::Result<PathCost> {
    reach.within(|| measure_path_cost(address, flow))?
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn a_network_of_its_own_has_what_the_hosts_has_not() {
        let network = NetworkNamespace::new().unwrap_or_else(|error| panic!("{error}"));
        let tap = network.tap().unwrap_or_else(|error| panic!("{error}"));
        let second = network.tap().unwrap_or_else(|error| panic!("{error}"));
        assert_ne!((tap.address, tap.number), (second.address, second.number));
        let here = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
        let there = network.within(|| std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap().unwrap();
        assert!(!here.contains(BRIDGE) && there.contains(BRIDGE) && there.contains("tap1"), "{there}");
        let listener = network.within(|| TcpListener::bind("127.0.0.1:0")).unwrap().unwrap();
        let address = listener.local_addr().unwrap();
        // A socket stays where it was opened, whichever process has it.
        let reach = Reach(Some(network));
        reach.within(|| TcpStream::connect(address)).unwrap().unwrap();
        let mut command = Command::new("cat");
        reach.run_there(command.arg("/proc/self/net/dev"));
        assert!(String::from_utf8(command.output().unwrap().stdout).unwrap().contains(BRIDGE));
        drop((tap, second));
        // A process that another test starts has the descriptors until it executes its program.
        let begun = Instant::now();
        let devices = || std::fs::read_to_string("/proc/thread-self/net/dev");
        while reach.within(devices).unwrap().unwrap().contains("tap") {
            assert!(begun.elapsed() < Duration::from_secs(30), "the tap devices stay");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

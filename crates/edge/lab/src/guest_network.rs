//! A guest's network interface, from the host's side to what the guest sees, and a cable between two guests.

use std::collections::BTreeMap;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

/// What QEMU's user-mode network calls the guest, and how many bits name the network.
pub(crate) const USER_ADDRESS: (Ipv4Addr, u8) = (Ipv4Addr::new(10, 0, 2, 15), 24);

/// How frames of a port of the bridge are read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortKind {
    /// One by one, by a tap device.
    Tap,
    /// By a packet socket: many at once.
    Packet,
}

impl PortKind {
    /// That there is none.
    pub(crate) fn missing(self) -> &'static str {
        match self {
            Self::Tap => "there is no tap device",
            Self::Packet => "there is no tap device, and no packet socket in its place",
        }
    }
}

/// A tap device, or what stands in its place, and who is behind it.
#[derive(Debug)]
pub struct Tap {
    /// Open on the device, which goes with its last descriptor.
    pub(crate) file: OwnedFd,
    /// How frames pass.
    pub(crate) kind: PortKind,
    /// The guest's address.
    pub(crate) address: Ipv4Addr,
    /// How many bits of it name the network.
    pub(crate) prefix: u8,
    /// A number that no other tap of its network has.
    pub(crate) number: u8,
    /// The largest packet, in bytes; the kernel's own where nothing is said.
    pub(crate) mtu: Option<u32>,
}

impl Tap {
    /// The Ethernet address of the card before it.
    pub(crate) fn mac(&self) -> String {
        mac(self.number)
    }

    /// Whether a packet socket stands in the place of a tap device.
    pub(crate) fn is_packet_socket(&self) -> bool {
        self.kind == PortKind::Packet
    }
}

fn mac(number: u8) -> String {
    format!("52:54:00:76:62:{number:02x}")
}

/// How a guest's network interface is connected.
#[derive(Debug, Clone)]
pub enum GuestNetwork {
    /// By QEMU itself, which forwards connections to ports of the host's loopback that are free. The guest reaches nobody.
    User {
        /// TCP ports of the guest.
        ports: Vec<u16>,
        /// UDP ports of the guest.
        datagram_ports: Vec<u16>,
    },
    /// By a tap device, whose frames QEMU carries.
    Tap(Arc<Tap>),
    /// By a tap device, whose frames the host's kernel carries.
    VhostTap(Arc<Tap>),
}

impl GuestNetwork {
    /// The guest's address and how many of its bits name the network.
    #[must_use]
    pub fn address(&self) -> (Ipv4Addr, u8) {
        match self {
            Self::User { .. } => USER_ADDRESS,
            Self::Tap(tap) | Self::VhostTap(tap) => (tap.address, tap.prefix),
        }
    }

    /// QEMU's arguments, and the descriptor that it inherits.
    pub(crate) fn arguments(&self) -> io::Result<(Vec<String>, Option<OwnedFd>)> {
        let (network, number, descriptor) = match self {
            Self::User { ports, datagram_ports } => {
                let guest = USER_ADDRESS.0;
                let kinds = [("tcp", ports), ("udp", datagram_ports)];
                let all = kinds.iter().flat_map(|(kind, ports)| ports.iter().map(move |port| (kind, port)));
                let forward = |(kind, port)| format!(",hostfwd={kind}:127.0.0.1:0-{guest}:{port}");
                let forwards: String = all.map(forward).collect();
                (format!("user,id=network,restrict=on,ipv6=off{forwards}"), 0, None)
            }
            Self::Tap(tap) | Self::VhostTap(tap) => {
                let file = tap.file.try_clone()?;
                let vhost = if matches!(self, Self::VhostTap(_)) { ",vhost=on" } else { "" };
                (format!("tap,id=network,fd={}{vhost}", file.as_raw_fd()), tap.number, Some(file))
            }
        };
        // Without a program to boot from the network: it would cost time at every start.
        let device = format!("virtio-net-pci,netdev=network,mac={},romfile=", mac(number));
        Ok((["-netdev", &network, "-device", &device].map(str::to_owned).into(), descriptor))
    }
}

/// The guest's ports of a protocol, `TCP` or `UDP`, with the host's, from what QEMU's monitor says to `info usernet`.
pub(crate) fn forwarded_ports(text: &str, protocol: &str) -> BTreeMap<u16, u16> {
    let kind = format!("{protocol}[HOST_FORWARD]");
    let forwards = text.lines().filter(|line| line.contains(&kind));
    let pair = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        Some((words.get(5)?.parse().ok()?, words.get(3)?.parse().ok()?))
    };
    forwards.filter_map(pair).collect()
}

/// Nobody routes to these: each cable is a network with two ends.
const NETWORK: [u8; 2] = [10, 78];

pub(crate) const PREFIX: u8 = 24;

/// The address of one of the two sides, 1 or 2, of a cable with this number.
pub(crate) fn cable_address(number: u8, side: u8) -> Ipv4Addr {
    let [a, b] = NETWORK;
    Ipv4Addr::new(a, b, number, side)
}

/// One end of a cable. Cloning gives another handle.
#[derive(Debug, Clone)]
pub struct CableEnd {
    socket: Arc<OwnedFd>,
    number: u8,
    side: u8,
}

impl CableEnd {
    /// Both ends of a new cable with a number that no other of the same guests has.
    ///
    /// # Errors
    /// There are no sockets left.
    pub fn pair(number: u8) -> io::Result<(Self, Self)> {
        // Datagrams, so that a frame stays one; between two processes of a host none is lost.
        let (first, second) = UnixDatagram::pair()?;
        let end = |socket: UnixDatagram, side| Self { socket: Arc::new(socket.into()), number, side };
        Ok((end(first, 1), end(second, 2)))
    }

    /// The address of the guest at this end.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        cable_address(self.number, self.side)
    }

    /// How many bits of it name the network.
    #[must_use]
    pub fn prefix(&self) -> u8 {
        PREFIX
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The Ethernet address of the card at this end.
    pub(crate) fn mac(&self) -> String {
        format!("52:54:00:76:{:02x}:{:02x}", 0x70 + self.side, self.number)
    }

    /// QEMU's arguments, and the descriptor that it inherits.
    pub(crate) fn arguments(&self) -> io::Result<(Vec<String>, OwnedFd)> {
        let socket = self.socket.try_clone()?;
        let number = self.number;
        let backend = format!("dgram,id=cable{number},local.type=fd,local.str={}", socket.as_raw_fd());
        let mac = self.mac();
        let device = format!("virtio-net-pci,netdev=cable{number},mac={mac},romfile=");
        Ok((["-netdev", &backend, "-device", &device].map(str::to_owned).into(), socket))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_read_from_what_the_monitor_says() {
        let text = "Hub -1 (network):\r\n  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ\r\n  \
                    TCP[HOST_FORWARD]  15       127.0.0.1 38753       10.0.2.15  5432     0     0\r\n  \
                    TCP[ESTABLISHED]  16       127.0.0.1 38753       10.0.2.15  5432     0     0\r\n  \
                    TCP[HOST_FORWARD]  14       127.0.0.1 40001       10.0.2.15 47000     0     0\r\n  \
                    UDP[HOST_FORWARD]  16       127.0.0.1 40002       10.0.2.15 47000     0     0\r\n";
        assert_eq!(forwarded_ports(text, "TCP"), BTreeMap::from([(5432, 38753), (47000, 40001)]));
        assert_eq!(forwarded_ports(text, "UDP"), BTreeMap::from([(47000, 40002)]));
        assert!(forwarded_ports("nonsense TCP[HOST_FORWARD]", "TCP").is_empty());
    }

    #[test]
    fn a_guest_of_the_user_mode_network_reaches_nobody() {
        let (words, descriptor) =
            GuestNetwork::User { ports: vec![80], datagram_ports: vec![81] }.arguments().unwrap();
        assert!(
            words[1].contains("restrict=on")
                && words[1]
                    .ends_with(",hostfwd=tcp:127.0.0.1:0-10.0.2.15:80,hostfwd=udp:127.0.0.1:0-10.0.2.15:81"),
            "{words:?}"
        );
        assert!(descriptor.is_none());
    }

    #[test]
    fn the_ends_of_a_cable_are_told_apart() {
        let (first, second) = CableEnd::pair(3).unwrap();
        assert_eq!(
            (first.address().to_string(), second.address().to_string()),
            ("10.78.3.1".into(), "10.78.3.2".into())
        );
        let (words, _) = first.arguments().unwrap();
        let (others, _) = second.arguments().unwrap();
        assert!(words[1].starts_with("dgram,id=cable3,local.type=fd,local.str="), "{words:?}");
        assert_ne!(words[3], others[3], "two cards of one address would not hear each other");
    }
}

//! An address from the DHCP server of an interface's network (RFC 2131, section 4.4.1).

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use edge_dhcp::{DhcpOption, MessageType, Options, Packet, Settings};
use socket2::{Domain, Protocol, Socket, Type};

use crate::interface::hardware_address;

/// Of RFC 2131, section 4.1.
const SERVER_PORT: u16 = 67;
const CLIENT_PORT: u16 = 68;
/// Where the flags of a message are, and the one that asks for an answer to everybody: who asks has no address yet.
const FLAGS_AT: usize = 10;
const BROADCAST: u8 = 0x80;
/// Relays may drop what is shorter (RFC 1542, section 2.1).
const LEAST_BYTES: usize = 300;
const MOST_BYTES: usize = 1500;
/// How long a server may take to answer before it is asked anew: some first look whether an address is used, for 2 or 3 s.
const ANSWER_LIMIT: Duration = Duration::from_secs(4);
/// How long an address may take: a bridge that looks for loops forwards nothing for half a minute.
const LEASE_LIMIT: Duration = Duration::from_secs(60);

/// What a server has granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lease {
    pub(crate) address: Ipv4Addr,
    /// How many bits of it name the network.
    pub(crate) prefix: u8,
    /// Who leads to other networks.
    pub(crate) router: Option<Ipv4Addr>,
}

/// Asks for an address of an interface that is switched on.
///
/// # Errors
/// In words: there is no such interface, or nobody grants an address within a minute.
pub(crate) fn lease(interface: &str) -> Result<Lease, String> {
    let socket = open(interface).map_err(|error| format!("no socket for DHCP on {interface}: {error}"))?;
    let hardware = hardware_address(interface);
    let hardware = hardware.map_err(|error| format!("{interface} has no Ethernet address: {error}"))?;
    let servers = (Ipv4Addr::BROADCAST, SERVER_PORT).into();
    let client = Client { socket: &socket, servers, hardware };
    client.lease(LEASE_LIMIT).ok_or_else(|| {
        format!(
            "nobody gave {interface} an address within {} s: the network that it is on needs a DHCP server",
            LEASE_LIMIT.as_secs()
        )
    })
}

/// A socket whose packets go out by an interface without an address.
fn open(interface: &str) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_broadcast(true)?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::UNSPECIFIED, CLIENT_PORT)).into())?;
    Ok(socket.into())
}

/// Who asks whom.
struct Client<'a> {
    socket: &'a UdpSocket,
    servers: SocketAddr,
    hardware: [u8; 6],
}

impl Client<'_> {
    fn lease(&self, limit: Duration) -> Option<Lease> {
        let begun = Instant::now();
        while begun.elapsed() <= limit {
            let discover = [DhcpOption::MessageType(MessageType::Discover), WANTED];
            let Some(offer) = self.ask(&discover, MessageType::Offer) else { continue };
            let request = [
                DhcpOption::MessageType(MessageType::Request),
                DhcpOption::RequestedIpAddress(offer.lease.address),
                DhcpOption::ServerIdentifier(offer.server),
                WANTED,
            ];
            if let Some(granted) = self.ask(&request, MessageType::Ack) {
                return Some(granted.lease);
            }
        }
        None
    }

    /// Sends a message and waits for its answer; nothing if none comes, or a refusal.
    fn ask(&self, options: &[DhcpOption<'_>], expected: MessageType) -> Option<Answer> {
        let message = message(self.hardware, options)?;
        let until = Instant::now() + ANSWER_LIMIT;
        // A link that is not up yet takes nothing; the next attempt is later.
        let _ = self.socket.send_to(&message, self.servers);
        let mut buffer = [0; MOST_BYTES];
        loop {
            let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())?;
            self.socket.set_read_timeout(Some(left)).ok()?;
            let Ok(count) = self.socket.recv(&mut buffer) else { continue };
            match answer(&buffer[..count], self.hardware) {
                Some(answer) if answer.kind == expected => return Some(answer),
                Some(answer) if answer.kind == MessageType::Nak => return None,
                _ => {}
            }
        }
    }
}

/// What a lease is to tell.
const WANTED: DhcpOption<'static> =
    DhcpOption::ParameterRequestList(&[DhcpOption::CODE_SUBNET, DhcpOption::CODE_ROUTER]);

/// Others on the network have other hardware. One number for all attempts, so that a late answer counts.
fn transaction(hardware: [u8; 6]) -> u32 {
    let [.., a, b, c, d] = hardware;
    u32::from_be_bytes([a, b, c, d])
}

fn message(hardware: [u8; 6], options: &[DhcpOption<'_>]) -> Option<Vec<u8>> {
    let packet = Packet::new_request(hardware, transaction(hardware), 0, None, false, Options::new(options));
    let mut bytes = vec![0; MOST_BYTES];
    let length = packet.encode(&mut bytes).ok()?.len();
    bytes.truncate(length.max(LEAST_BYTES));
    bytes[FLAGS_AT] |= BROADCAST;
    Some(bytes)
}

/// What a server has said.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    kind: MessageType,
    lease: Lease,
    server: Ipv4Addr,
}

/// The answer to this hardware; nothing if it is not one.
fn answer(bytes: &[u8], hardware: [u8; 6]) -> Option<Answer> {
    let packet = Packet::decode(bytes).ok()?;
    if !packet.is_for_us(&hardware, transaction(hardware)) {
        return None;
    }
    let kind = packet.options.iter().find_map(|option| match option {
        DhcpOption::MessageType(kind) => Some(kind),
        _ => None,
    })?;
    let settings = Settings::new(&packet);
    let prefix = settings.subnet.map_or(24, |mask| mask.to_bits().leading_ones());
    let lease = Lease { address: settings.ip, prefix: u8::try_from(prefix).ok()?, router: settings.gateway };
    Some(Answer { kind, lease, server: settings.server_ip? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::thread;

    const HARDWARE: [u8; 6] = [0x52, 0x54, 0, 1, 2, 3];
    const GRANTED: Ipv4Addr = Ipv4Addr::new(192, 168, 122, 77);
    const SERVER: Ipv4Addr = Ipv4Addr::new(192, 168, 122, 1);

    /// Answers one message after the other with these kinds.
    fn serve(server: &UdpSocket, kinds: &[MessageType]) {
        server.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        for kind in kinds {
            let mut buffer = [0; MOST_BYTES];
            let (count, from) = server.recv_from(&mut buffer).unwrap();
            assert!(count >= LEAST_BYTES && buffer[FLAGS_AT] == BROADCAST, "{count}");
            let asked = Packet::decode(&buffer[..count]).unwrap();
            if *kind == MessageType::Ack {
                let names = |wanted: DhcpOption<'_>| asked.options.iter().any(|option| option == wanted);
                assert!(names(DhcpOption::RequestedIpAddress(GRANTED)), "{:?}", asked.options);
                assert!(names(DhcpOption::ServerIdentifier(SERVER)), "{:?}", asked.options);
            }
            let options = [
                DhcpOption::MessageType(*kind),
                DhcpOption::ServerIdentifier(SERVER),
                DhcpOption::SubnetMask(Ipv4Addr::new(255, 255, 255, 128)),
            ];
            let mut bytes = [0; MOST_BYTES];
            let reply = asked.new_reply(Some(GRANTED), Options::new(&options));
            // What is not meant for this client is passed over.
            let mut other = reply.clone();
            other.xid += 1;
            server.send_to(other.encode(&mut bytes).unwrap(), from).unwrap();
            server.send_to(b"noise", from).unwrap();
            server.send_to(reply.encode(&mut bytes).unwrap(), from).unwrap();
        }
    }

    fn lease_from(kinds: &'static [MessageType]) -> Option<Lease> {
        let [client, server] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        let servers = server.local_addr().unwrap();
        let serving = thread::spawn(move || serve(&server, kinds));
        let lease = Client { socket: &client, servers, hardware: HARDWARE }.lease(Duration::from_secs(30));
        serving.join().unwrap();
        lease
    }

    #[test]
    fn an_offer_is_requested_and_taken_once_it_is_granted() {
        let expected = Lease { address: GRANTED, prefix: 25, router: None };
        assert_eq!(lease_from(&[MessageType::Offer, MessageType::Ack]), Some(expected));
    }

    #[test]
    fn who_is_refused_asks_anew() {
        use MessageType::{Ack, Nak, Offer};
        assert_eq!(lease_from(&[Offer, Nak, Offer, Ack]).map(|lease| lease.address), Some(GRANTED));
    }

    #[test]
    fn without_a_server_there_is_no_address() {
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let client = Client { socket: &client, servers: nobody.local_addr().unwrap(), hardware: HARDWARE };
        assert_eq!(client.lease(Duration::from_millis(10)), None);
    }

    proptest! {
        #[test]
        fn no_bytes_of_a_server_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = answer(&bytes, HARDWARE);
        }
    }
}

//! A cable between two guests: frames go from one to the other by a pair of sockets. It needs no rights, and nobody else is on it.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;

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

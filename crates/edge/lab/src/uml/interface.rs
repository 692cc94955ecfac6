//! A network interface of a guest of User Mode Linux: its vector driver on a descriptor that the kernel inherits.

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use crate::cable::CableEnd;
use crate::guest_network::{PortKind, Tap};

/// What the guest's kernel calls its first interface, less the number.
pub(crate) const INTERFACE: &str = "vec";

/// What a network interface is connected to. Cloning gives another handle.
#[derive(Debug, Clone)]
pub enum UmlInterface {
    /// A tap device whose frames have no header.
    Tap(Arc<Tap>),
    /// One end of a cable to another guest.
    Cable(CableEnd),
}

impl UmlInterface {
    /// The kernel's argument for the interface of this number, and the descriptor that it inherits.
    pub(super) fn argument(&self, number: usize) -> io::Result<(String, OwnedFd)> {
        let (descriptor, mac, batches, mtu) = match self {
            // A tap device is read and written frame by frame: it is no socket.
            Self::Tap(tap) if tap.kind == PortKind::Tap => (tap.file.as_fd(), tap.mac(), ",vec=0", tap.mtu),
            Self::Tap(port) => (port.file.as_fd(), port.mac(), "", port.mtu),
            Self::Cable(cable) => (cable.socket(), cable.mac(), "", None),
        };
        let mtu = mtu.map(|mtu| format!(",mtu={mtu}")).unwrap_or_default();
        let descriptor = descriptor.try_clone_to_owned()?;
        let fd = descriptor.as_raw_fd();
        Ok((format!("{INTERFACE}{number}:transport=fd,fd={fd},mac={mac}{batches}{mtu}"), descriptor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_cable_are_interfaces_with_addresses_of_their_own() {
        let (first, second) = CableEnd::pair(3).unwrap();
        let words = [first, second].map(|end| UmlInterface::Cable(end).argument(1).unwrap().0);
        assert!(words[0].starts_with("vec1:transport=fd,fd=") && words[0].contains("mac=52:54:00:76:71:03"));
        assert!(words[1].contains("mac=52:54:00:76:72:03") && !words[1].contains("vec=0"), "{words:?}");
    }
}

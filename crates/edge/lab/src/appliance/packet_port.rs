//! A port of a bridge for a guest where the host has no tap device to give: frames pass by a packet socket (packet(7)).

use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr;

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::{AddressFamily, SocketType, bind, socket, sockopt};
use virtbench_agent::enclosure::OwnNetwork;
use virtbench_agent::interface::{interface_index, leave_nothing_to_the_card, set_up};

use super::ethernet_pair::make_ethernet_pair;

/// What the guest's end is called, alone in its network.
const GUEST_END: &str = "guest";
/// Of `linux/if_ether.h`, in the network's order of bytes.
const ETH_P_ALL: u16 = 3_u16.to_be();
const AF_PACKET: u16 = 17;
/// Frames that wait for the guest, in bytes as the kernel counts them: about as many as a tap device keeps.
const WAITING_BYTES: usize = 4 << 20;

/// Makes a device `name` in the network of the calling thread. What is sent to it is read from the socket, which carries it away when
/// it is closed. The other end is in a network of its own, so that the kernel answers nothing there in the guest's place.
///
/// # Errors
/// The kernel has no virtual Ethernet devices or no packet sockets, or rights over the network are needed.
pub(super) fn make_packet_port(name: &str) -> io::Result<OwnedFd> {
    let guest = OwnNetwork::new()?;
    make_ethernet_pair(name, GUEST_END, &guest.descriptor()?)?;
    // Frames are whole when they reach the guest: of their headers it hears nothing.
    leave_nothing_to_the_card(name)?;
    guest.within(open_guest_end)?
}

fn open_guest_end() -> io::Result<OwnedFd> {
    set_up(GUEST_END)?;
    // Until it is bound it hears nothing.
    let port = socket(AddressFamily::PACKET, SocketType::RAW, None)?;
    // What the host allows all sockets is less. Without the right to more it stays with that.
    let _ = sockopt::set_socket_recv_buffer_size(&port, WAITING_BYTES);
    let _ = sockopt::set_socket_recv_buffer_size_force(&port, WAITING_BYTES);
    bind(port.as_fd(), &LinkAddress::of(interface_index(GUEST_END)?))?;
    Ok(port)
}

/// `struct sockaddr_ll`.
#[repr(C)]
struct LinkAddress {
    family: u16,
    protocol: u16,
    index: u32,
    rest: [u8; 12],
}

const LINK_ADDRESS_BYTES: SocketAddrLen = 20;
const _: () = assert!(size_of::<LinkAddress>() == LINK_ADDRESS_BYTES as usize, "as the kernel lays it out");

impl LinkAddress {
    fn of(index: u32) -> Self {
        Self { family: AF_PACKET, protocol: ETH_P_ALL, index, rest: [0; 12] }
    }
}

// SAFETY: the pointer is to a whole `struct sockaddr_ll`, which lives as long as the call.
unsafe impl SocketAddrArg for LinkAddress {
    unsafe fn with_sockaddr<R>(&self, call: impl FnOnce(*const SocketAddrOpaque, SocketAddrLen) -> R) -> R {
        call(ptr::from_ref(self).cast(), LINK_ADDRESS_BYTES)
    }
}

//! A pair of virtual Ethernet devices whose ends are in two networks (rtnetlink(7)): it goes when one end goes. And a port of a
//! bridge that is one, for a guest where the host has no tap device to give.

use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::{io, ptr};

use rustix::net::addr::{SocketAddrArg, SocketAddrLen, SocketAddrOpaque};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketType, bind, recv, send, socket, sockopt};
use virtbench_agent::enclosure::OwnNetwork;
use virtbench_agent::interface::{interface_index, leave_nothing_to_the_card, set_up};

/// Of `linux/rtnetlink.h`, `linux/netlink.h`, `linux/if_link.h` and `linux/veth.h`.
const RTM_NEWLINK: u16 = 16;

const NLM_F_REQUEST_ACK_CREATE_EXCL: u16 = 1 | 4 | 0x400 | 0x200;

const NLMSG_ERROR: u16 = 2;

const IFLA_IFNAME: u16 = 3;

const IFLA_LINKINFO: u16 = 18;

const IFLA_NET_NS_FD: u16 = 28;

const IFLA_INFO_KIND: u16 = 1;

const IFLA_INFO_DATA: u16 = 2;

const VETH_INFO_PEER: u16 = 1;

/// `struct ifinfomsg`, all of it zero: a device that is not there yet.
const NEW_DEVICE: [u8; 16] = [0; 16];

const HEADER_BYTES: usize = 16;

/// Makes one: `name` in the network of the calling thread, `peer` in the one of this descriptor.
///
/// # Errors
/// There is a device of such a name, the kernel has no such devices, or rights over both networks are needed.
pub(crate) fn make_ethernet_pair(name: &str, peer: &str, there: &OwnedFd) -> io::Result<()> {
    // Of its protocols the first is that of routing.
    let routing = socket(AddressFamily::NETLINK, SocketType::RAW, None)?;
    let order = order(name, peer, there.as_raw_fd());
    send(&routing, &order, SendFlags::empty())?;
    let mut answer = [0; 4096];
    let (_, bytes) = recv(&routing, &mut answer, RecvFlags::empty())?;
    refusal(answer.get(..bytes).unwrap_or_default())
}

fn order(name: &str, peer: &str, there: i32) -> Vec<u8> {
    let text = |name: &str| [name.as_bytes(), &[0]].concat();
    let peer = [
        NEW_DEVICE.to_vec(),
        attribute(IFLA_IFNAME, &text(peer)),
        attribute(IFLA_NET_NS_FD, &there.to_ne_bytes()),
    ];
    let kind = [
        attribute(IFLA_INFO_KIND, b"veth"),
        attribute(IFLA_INFO_DATA, &attribute(VETH_INFO_PEER, &peer.concat())),
    ];
    let body =
        [NEW_DEVICE.to_vec(), attribute(IFLA_IFNAME, &text(name)), attribute(IFLA_LINKINFO, &kind.concat())];
    let body = body.concat();
    let mut order = u32::try_from(HEADER_BYTES + body.len()).unwrap_or(u32::MAX).to_ne_bytes().to_vec();
    order.extend(RTM_NEWLINK.to_ne_bytes());
    order.extend(NLM_F_REQUEST_ACK_CREATE_EXCL.to_ne_bytes());
    // Number and sender: there is one request, and the kernel knows whose it is.
    order.extend([0; 8]);
    order.extend(body);
    order
}

/// `struct nlattr` with what it holds, padded to four bytes.
fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut attribute = u16::try_from(4 + value.len()).unwrap_or(u16::MAX).to_ne_bytes().to_vec();
    attribute.extend(kind.to_ne_bytes());
    attribute.extend(value);
    attribute.resize(attribute.len().next_multiple_of(4), 0);
    attribute
}

/// What `struct nlmsgerr` says, which is also sent where all went well.
fn refusal(answer: &[u8]) -> io::Result<()> {
    let unclear = || io::Error::other("the kernel's answer is none");
    let kind = answer.get(4..6).and_then(|bytes| bytes.try_into().ok()).map(u16::from_ne_bytes);
    let code = answer.get(HEADER_BYTES..HEADER_BYTES + 4).and_then(|bytes| bytes.try_into().ok());
    match (kind, code.map(i32::from_ne_bytes)) {
        (Some(NLMSG_ERROR), Some(0)) => Ok(()),
        (Some(NLMSG_ERROR), Some(code)) => Err(io::Error::from_raw_os_error(code.saturating_neg())),
        _ => Err(unclear()),
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_padded_and_say_how_long_they_are_without_it() {
        assert_eq!(attribute(3, b"ab\0"), [7, 0, 3, 0, b'a', b'b', 0, 0]);
        let order = order("port10", "port", 9);
        assert_eq!(order.len() % 4, 0);
        assert_eq!(u32::from_ne_bytes(order[..4].try_into().unwrap()) as usize, order.len());
    }

    #[test]
    fn what_the_kernel_refuses_is_its_error() {
        let mut answer = [0; 36];
        assert!(refusal(&answer).is_err() && refusal(&[]).is_err());
        answer[4] = 2;
        assert!(refusal(&answer).is_ok());
        answer[16..20].copy_from_slice(&(-17_i32).to_ne_bytes());
        assert_eq!(refusal(&answer).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}

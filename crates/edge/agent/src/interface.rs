//! Network interfaces, by the system calls of netdevice(7).

use std::io;
use std::mem::size_of;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::ioctl::{self, Opcode, Updater};
use rustix::net::{AddressFamily, SocketType, socket};

/// Of `linux/sockios.h`.
const SIOCGIFFLAGS: Opcode = 0x8913;
const SIOCSIFFLAGS: Opcode = 0x8914;
const SIOCSIFADDR: Opcode = 0x8916;
const SIOCSIFNETMASK: Opcode = 0x891c;
const SIOCGIFHWADDR: Opcode = 0x8927;
const SIOCSIFMTU: Opcode = 0x8922;
const SIOCGIFINDEX: Opcode = 0x8933;
const SIOCETHTOOL: Opcode = 0x8946;
const SIOCADDRT: Opcode = 0x890b;
/// Of `linux/ethtool.h`.
const ETHTOOL_STXCSUM: u32 = 0x17;
/// Of `linux/route.h`.
const RTF_UP: u16 = 1;
const RTF_GATEWAY: u16 = 2;
/// Of `linux/if_arp.h`.
const ARPHRD_ETHER: u16 = 1;
/// Of `linux/if.h`.
const IFF_UP: u16 = 1;
const AF_INET: u16 = 2;
const NAME_BYTES: usize = 16;

/// `struct ifreq` of Linux with 64-bit longs: a name, then what it is about.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
pub struct InterfaceRequest {
    name: [u8; NAME_BYTES],
    value: [u8; 24],
}

const _: () = assert!(size_of::<InterfaceRequest>() == 40, "as the kernel lays it out");

impl InterfaceRequest {
    /// One about an interface of this name.
    ///
    /// # Errors
    /// No interface can have such a name.
    pub fn new(name: &str) -> io::Result<Self> {
        if name.is_empty() || name.len() >= NAME_BYTES || name.contains('\0') {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut request = Self { name: [0; NAME_BYTES], value: [0; 24] };
        request.name[..name.len()].copy_from_slice(name.as_bytes());
        Ok(request)
    }

    /// The same with a number of 16 bits, such as flags.
    #[must_use]
    pub fn with_u16(mut self, number: u16) -> Self {
        self.value[..2].copy_from_slice(&number.to_ne_bytes());
        self
    }

    /// The same with a number of 32 bits, such as the index of an interface.
    #[must_use]
    pub fn with_u32(mut self, number: u32) -> Self {
        self.value[..4].copy_from_slice(&number.to_ne_bytes());
        self
    }

    /// The first 16 bits of what the kernel has answered.
    #[must_use]
    pub fn u16(&self) -> u16 {
        u16::from_ne_bytes([self.value[0], self.value[1]])
    }

    /// The first 32 bits of what the kernel has answered.
    #[must_use]
    pub fn u32(&self) -> u32 {
        u32::from_ne_bytes([self.value[0], self.value[1], self.value[2], self.value[3]])
    }

    /// The name, as the kernel may have completed it.
    #[must_use]
    pub fn name(&self) -> String {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(NAME_BYTES);
        String::from_utf8_lossy(&self.name[..end]).into_owned()
    }

    /// `struct sockaddr_in`.
    fn with_address(mut self, address: Ipv4Addr) -> Self {
        self.value[..2].copy_from_slice(&AF_INET.to_ne_bytes());
        self.value[4..8].copy_from_slice(&address.octets());
        self
    }
}

/// Makes one call about an interface, or with its name.
///
/// # Errors
/// The kernel refuses.
///
/// # Safety
/// `CALL` has to be one that takes a `struct ifreq`, and may write to it, and nothing else.
pub unsafe fn call<const CALL: Opcode>(on: BorrowedFd<'_>, request: &mut InterfaceRequest) -> io::Result<()> {
    // SAFETY: the caller says that the call takes what `InterfaceRequest` is.
    unsafe { ioctl::ioctl(on, Updater::<CALL, InterfaceRequest>::new(request)) }?;
    Ok(())
}

/// A socket on which calls about interfaces can be made.
///
/// # Errors
/// No descriptor is left.
pub fn control_socket() -> io::Result<OwnedFd> {
    Ok(socket(AddressFamily::INET, SocketType::DGRAM, None)?)
}

/// Switches an interface on.
///
/// # Errors
/// There is none of that name, or root is needed.
pub fn set_up(name: &str) -> io::Result<()> {
    let (socket, mut request) = (control_socket()?, InterfaceRequest::new(name)?);
    // SAFETY: SIOCGIFFLAGS and SIOCSIFFLAGS take a `struct ifreq`.
    unsafe {
        call::<SIOCGIFFLAGS>(socket.as_fd(), &mut request)?;
        request = request.with_u16(request.u16() | IFF_UP);
        call::<SIOCSIFFLAGS>(socket.as_fd(), &mut request)
    }
}

/// Sets the size of the largest packet of an interface, in bytes.
///
/// # Errors
/// There is none of that name, it cannot carry such packets, or root is needed.
pub fn set_mtu(name: &str, bytes: u32) -> io::Result<()> {
    let (socket, mut request) = (control_socket()?, InterfaceRequest::new(name)?.with_u32(bytes));
    // SAFETY: SIOCSIFMTU takes a `struct ifreq`.
    unsafe { call::<SIOCSIFMTU>(socket.as_fd(), &mut request) }
}

/// Gives an interface its IPv4 address in a network whose name has `prefix` bits.
///
/// # Errors
/// There is none of that name, or root is needed.
pub fn set_address(name: &str, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
    let mask = Ipv4Addr::from_bits(u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0));
    let (socket, request) = (control_socket()?, InterfaceRequest::new(name)?);
    // SAFETY: SIOCSIFADDR and SIOCSIFNETMASK take a `struct ifreq`.
    unsafe {
        call::<SIOCSIFADDR>(socket.as_fd(), &mut request.with_address(address))?;
        call::<SIOCSIFNETMASK>(socket.as_fd(), &mut request.with_address(mask))
    }
}

/// The number by which the kernel knows an interface.
///
/// # Errors
/// There is none of that name.
pub fn interface_index(name: &str) -> io::Result<u32> {
    let (socket, mut request) = (control_socket()?, InterfaceRequest::new(name)?);
    // SAFETY: SIOCGIFINDEX takes a `struct ifreq`.
    unsafe { call::<SIOCGIFINDEX>(socket.as_fd(), &mut request) }?;
    Ok(request.u32())
}

/// Has the kernel compute checksums itself before it sends by an interface, and so cut large frames, which needs them.
///
/// # Errors
/// There is none of that name, it cannot do so, or root is needed.
pub fn leave_nothing_to_the_card(name: &str) -> io::Result<()> {
    let (socket, mut request) = (control_socket()?, InterfaceRequest::new(name)?);
    // `struct ethtool_value`: the command, and the value that is set.
    let mut command = [ETHTOOL_STXCSUM, 0];
    let address = command.as_mut_ptr().expose_provenance();
    request.value[..8].copy_from_slice(&(address as u64).to_ne_bytes());
    // SAFETY: SIOCETHTOOL takes a `struct ifreq` with a pointer to what the command needs, which outlives the call.
    unsafe { call::<SIOCETHTOOL>(socket.as_fd(), &mut request) }
}

/// The Ethernet address of an interface.
///
/// # Errors
/// There is none of that name, or it is not of Ethernet.
pub fn hardware_address(name: &str) -> io::Result<[u8; 6]> {
    let (socket, mut request) = (control_socket()?, InterfaceRequest::new(name)?);
    // SAFETY: SIOCGIFHWADDR takes a `struct ifreq`.
    unsafe { call::<SIOCGIFHWADDR>(socket.as_fd(), &mut request) }?;
    if request.u16() != ARPHRD_ETHER {
        return Err(io::Error::other("it is not of Ethernet"));
    }
    let [_, _, a, b, c, d, e, f, ..] = request.value;
    Ok([a, b, c, d, e, f])
}

/// `struct sockaddr_in`.
#[repr(C)]
#[derive(Clone, Copy)]
struct InternetAddress {
    family: u16,
    port: u16,
    address: [u8; 4],
    zero: [u8; 8],
}

impl InternetAddress {
    fn new(address: Ipv4Addr) -> Self {
        Self { family: AF_INET, port: 0, address: address.octets(), zero: [0; 8] }
    }
}

/// `struct rtentry` of Linux with 64-bit longs.
#[repr(C)]
struct RouteRequest {
    pad1: u64,
    destination: InternetAddress,
    gateway: InternetAddress,
    mask: InternetAddress,
    flags: u16,
    pad2: i16,
    pad3: [u64; 2],
    metric: i16,
    device: usize,
    mtu: u64,
    window: u64,
    irtt: u16,
}

const _: () = assert!(size_of::<RouteRequest>() == 120, "as the kernel lays it out");

/// Has a router lead to all networks that are no interface's.
///
/// # Errors
/// There is a default route already, the router is on no interface's network, or root is needed.
pub fn set_default_route(router: Ipv4Addr) -> io::Result<()> {
    let everywhere = InternetAddress::new(Ipv4Addr::UNSPECIFIED);
    let mut request = RouteRequest {
        pad1: 0,
        destination: everywhere,
        gateway: InternetAddress::new(router),
        mask: everywhere,
        flags: RTF_UP | RTF_GATEWAY,
        pad2: 0,
        pad3: [0; 2],
        metric: 0,
        device: 0,
        mtu: 0,
        window: 0,
        irtt: 0,
    };
    let socket = control_socket()?;
    // SAFETY: SIOCADDRT takes a `struct rtentry`, and its device may be a null pointer.
    unsafe { ioctl::ioctl(socket.as_fd(), Updater::<SIOCADDRT, RouteRequest>::new(&mut request)) }?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_up_and_what_is_no_interface_is_refused() {
        assert!(set_up("a-name-that-is-too-long").is_err());
        assert!(set_up("").is_err() && set_up("virtbench9").is_err());
        let none = hardware_address("lo").unwrap_err().to_string();
        assert_eq!(none, "it is not of Ethernet");
    }

    #[test]
    fn an_address_is_laid_out_as_sockaddr_in() {
        let request = InterfaceRequest::new("eth0").unwrap().with_address(Ipv4Addr::new(10, 0, 2, 15));
        assert_eq!((request.u16(), &request.value[4..8]), (AF_INET, &[10, 0, 2, 15][..]));
        assert_eq!(request.name[..5], *b"eth0\0");
    }
}

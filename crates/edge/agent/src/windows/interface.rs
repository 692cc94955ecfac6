//! Network interfaces, which the agent sets in guests of Linux only.

use std::io;
use std::net::Ipv4Addr;

fn refused() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "interfaces are set in guests of Linux, and this machine runs Windows",
    )
}

/// # Errors
/// Always.
pub(crate) fn set_mtu(_name: &str, _bytes: u32) -> io::Result<()> {
    Err(refused())
}

/// # Errors
/// Always.
pub(crate) fn set_address(_name: &str, _address: Ipv4Addr, _prefix: u8) -> io::Result<()> {
    Err(refused())
}

/// # Errors
/// Always.
pub(crate) fn set_up(_name: &str) -> io::Result<()> {
    Err(refused())
}

//! Where an existing desktop serves VNC.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

const SCHEME: &str = "vnc://";
const FIRST_PORT: u16 = 5900;
/// A larger number after the colon is a port, as VNC viewers have it.
const LAST_DISPLAY: u16 = 99;

/// Where an existing desktop serves VNC: `vnc://host`, `vnc://host:display` or `vnc://host::port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VncAddress {
    /// Its name or address; an IPv6 address without brackets.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
}

/// Why a text is no such address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no VNC server's address: write vnc://HOST, vnc://HOST:DISPLAY or vnc://HOST::PORT")]
pub struct NoAddress(pub String);

impl FromStr for VncAddress {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let no = || NoAddress(text.to_owned());
        let rest = text.strip_prefix(SCHEME).ok_or_else(no)?;
        let (host, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').ok_or_else(no)?,
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        let plain = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
        if host.is_empty() || !host.chars().all(plain) {
            return Err(no());
        }
        let number = |digits: &str| digits.parse::<u16>().map_err(|_| no());
        let port = match (after.strip_prefix("::"), after.strip_prefix(':')) {
            (Some(port), _) => number(port)?,
            (None, Some(display)) => match number(display)? {
                display @ 0..=LAST_DISPLAY => FIRST_PORT + display,
                port => port,
            },
            (None, None) if after.is_empty() => FIRST_PORT,
            (None, None) => return Err(no()),
        };
        if port == 0 { Err(no()) } else { Ok(Self { host: host.to_owned(), port }) }
    }
}

impl fmt::Display for VncAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(formatter, "{SCHEME}[{host}]::{port}")
        } else {
            write!(formatter, "{SCHEME}{host}::{port}")
        }
    }
}

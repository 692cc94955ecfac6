//! Where users find their desktops.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use virtbench_desktop::Desk;
use virtbench_desktops::VncAddress;

use super::appliance::DesktopAppliance;
use crate::guests::ApplianceGuests;

/// How long a desktop that is there already may take to accept a connection, for each of its addresses.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// Where the password of existing desktops is looked for if none is given.
const PASSWORD_VARIABLE: &str = "VIRTBENCH_VNC_PASSWORD";

/// Where users find their desktops.
#[derive(Debug)]
pub enum DesktopSource {
    /// The study starts them from a root: as sessions on this host or, with guests, each in a VM.
    Started {
        /// The root.
        desktop: Box<DesktopAppliance>,
        /// What VMs need.
        guests: Option<Box<ApplianceGuests>>,
    },
    /// They are there already.
    Existing(ExistingDesktops),
}

impl DesktopSource {
    /// The desktop that is started here, unless they are there already.
    pub(super) fn started(&self) -> Option<&DesktopAppliance> {
        match self {
            Self::Started { desktop, .. } => Some(desktop),
            Self::Existing(_) => None,
        }
    }
}

/// Desktops that are there already, one for each user.
#[derive(Debug, Clone)]
pub struct ExistingDesktops {
    /// Where they serve VNC.
    pub addresses: Vec<VncAddress>,
    /// What all of them ask for, if they do.
    pub password: Option<String>,
}

impl ExistingDesktops {
    /// Those at these addresses, which ask for this password; else for that in the environment variable, if it is set.
    #[must_use]
    pub fn at(addresses: Vec<VncAddress>, password: Option<String>) -> Self {
        Self { addresses, password: password.or_else(|| std::env::var(PASSWORD_VARIABLE).ok()) }
    }

    /// The ways to the first ones. That one cannot be reached is for its user to tell.
    pub(super) fn desks(&self, count: u32) -> Vec<Desk> {
        let desk = |address: &VncAddress| {
            let screen =
                connect(address).map_err(|error| io::Error::new(error.kind(), format!("{address}: {error}")));
            Desk { screen, control: None, password: self.password.clone() }
        };
        self.addresses.iter().take(count as usize).map(desk).collect()
    }
}

fn connect(address: &VncAddress) -> io::Result<TcpStream> {
    let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for resolved in (address.host.as_str(), address.port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&resolved, CONNECT_LIMIT) {
            Ok(stream) => return Ok(stream),
            Err(error) => last = error,
        }
    }
    Err(last)
}

//! A member that is there already: the software of a recipe, on a machine that somebody else started.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use virtbench_lab::Reach;
use virtbench_recipe::Recipe;
use virtbench_users::Address;

use crate::disks::served::Served;

/// How long a machine may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A member that is there already.
#[derive(Debug)]
pub(super) struct ExistingMember {
    /// The recipe's ports, and where each is.
    addresses: Vec<(u16, SocketAddr)>,
    processors: u32,
}

impl ExistingMember {
    /// Finds the services of a recipe at `HOST`, or at `HOST:PORT` where the first of them listens elsewhere, and looks whether that
    /// one takes connections.
    ///
    /// # Errors
    /// It is no address, nobody answers there, or the recipe has no port; in words.
    pub(super) fn find(at: &str, recipe: &Recipe, processors: u32) -> Result<Self, String> {
        let ports = recipe.ports();
        let first = *ports.first().ok_or("its recipe has no port, so nobody can reach it")?;
        let address = Address::parse(at, first)?;
        let mut why = String::new();
        for found in address.found() {
            match TcpStream::connect_timeout(found, CONNECT_LIMIT) {
                Ok(_) => {
                    let of =
                        |port: u16| if port == first { *found } else { SocketAddr::new(found.ip(), port) };
                    let addresses = ports.iter().map(|port| (*port, of(*port))).collect();
                    return Ok(Self { addresses, processors });
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(format!("nobody answers at {address}: {why}"))
    }
}

impl Served for ExistingMember {
    fn ports(&self) -> Vec<u16> {
        self.addresses.iter().map(|(port, _)| *port).collect()
    }

    fn address(&self, port: u16) -> Option<SocketAddr> {
        self.addresses.iter().find(|(own, _)| *own == port).map(|(_, address)| *address)
    }

    fn processors(&self) -> u32 {
        self.processors
    }

    fn reach(&self) -> Reach {
        Reach::here()
    }
}

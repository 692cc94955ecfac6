//! A member that is there already: the software of a recipe, on a machine that somebody else started.

use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use virtbench_lab::Reach;
use virtbench_platforms::{MadeVm, VmTemplate};
use virtbench_recipe::Recipe;
use virtbench_users::Address;

use super::member_at::Template;
use crate::disks::served::Served;

/// How long the service of a VM that was made may take to answer.
const SERVICE_LIMIT: Duration = Duration::from_secs(300);
/// How long one waits between attempts.
const SERVICE_PAUSE: Duration = Duration::from_millis(500);
/// How long a machine may take to answer.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// A member that is there already.
#[derive(Debug)]
pub(super) struct ExistingMember {
    /// The recipe's ports, and where each is.
    addresses: Vec<(u16, SocketAddr)>,
    processors: u32,
    /// The VM that was made for it, if one was. It goes with the member.
    _vm: Option<MadeVm>,
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
                    return Ok(Self { addresses, processors, _vm: None });
                }
                Err(error) => why = error.to_string(),
            }
        }
        Err(format!("nobody answers at {address}: {why}"))
    }

    /// Makes a VM of a template, and waits until its service takes connections.
    ///
    /// # Errors
    /// No VM is made, its service does not answer in time, or everything is to stop; in words. What was made is removed.
    pub(super) fn make(
        template: &Template,
        recipe: &Recipe,
        processors: u32,
        stop: &AtomicBool,
    ) -> Result<Self, String> {
        let vm = template.guest.make().map_err(|error| error.message)?;
        let at = match template.port {
            Some(port) => {
                SocketAddr::new(vm.ip().parse().map_err(|_| format!("{} is no address", vm.ip()))?, port)
                    .to_string()
            }
            None => vm.ip().to_owned(),
        };
        let until = Instant::now() + SERVICE_LIMIT;
        loop {
            match Self::find(&at, recipe, processors) {
                Ok(found) => return Ok(Self { _vm: Some(vm), ..found }),
                Err(why) if stop.load(Ordering::Relaxed) || Instant::now() > until => return Err(why),
                Err(_) => thread::sleep(SERVICE_PAUSE),
            }
        }
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

//! Where users find their desktops: those that a study starts many of, and those that are there.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use virtbench_desktop::Desk;
use virtbench_desktops::VncAddress;
use virtbench_recipe::{Recipe, ServicePlace, supplied};
use virtbench_record::ApplianceRoot;

use crate::appliances::built::BuiltAppliance;
use crate::guests::ApplianceGuests;
use crate::runner::progress::Progress;
use crate::study_error::StudyError;

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

/// Where the recipes of desktops serve VNC, unless it is their VM's screen.
pub(super) const VNC_PORT: u16 = 5900;

/// Where the program inside the session listens.
pub(super) const SESSION_PORT: u16 = 5999;

/// A desktop's root.
#[derive(Debug)]
pub struct DesktopAppliance {
    pub(super) built: BuiltAppliance,
}

impl DesktopAppliance {
    /// Finds the root of a recipe, supplied or a file, for desktops in a place, or builds it.
    ///
    /// # Errors
    /// There is no such recipe, it is no desktop, or it cannot be built here.
    pub fn find(name: &str, place: ServicePlace, progress: &mut Progress<'_>) -> Result<Self, StudyError> {
        let recipe = recipe(name)?;
        let ports = recipe.at(place).ports();
        let is_shown = recipe.screen && place == ServicePlace::Vm;
        let wanted = if is_shown { &[SESSION_PORT][..] } else { &[VNC_PORT, SESSION_PORT] };
        if let Some(port) = wanted.iter().find(|port| !ports.contains(port)) {
            return Err(StudyError::input(format!(
                "the recipe {name} is no desktop: no service of it has the port {port} there; {VNC_PORT} serves VNC, {SESSION_PORT} the program \
                 inside the session (see the recipe desktop-small)"
            )));
        }
        if recipe.data.is_some() {
            return Err(StudyError::input(format!(
                "the recipe {name} has data of its own: each desktop begins with its root alone, so put documents into [[files]]"
            )));
        }
        Ok(Self { built: BuiltAppliance::find(&recipe, progress)? })
    }

    /// Digest of the root, in hexadecimal digits.
    #[must_use]
    pub fn root_digest(&self) -> &str {
        self.built.root_digest()
    }

    /// The recipe's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.built.appliance.recipe.name
    }

    /// Whether its VMs have a screen.
    #[must_use]
    pub fn has_screen(&self) -> bool {
        self.built.appliance.recipe.screen
    }

    /// The least memory that it needs, in bytes.
    #[must_use]
    pub fn least_memory(&self) -> u64 {
        self.built.least_memory()
    }

    /// What it is made of.
    pub(super) fn root(&self) -> ApplianceRoot {
        self.built.root()
    }

    /// The image that every desktop reads. What one writes stays in its memory.
    pub(super) fn image(&self) -> PathBuf {
        self.built.appliance.image()
    }
}

fn recipe(name: &str) -> Result<Recipe, StudyError> {
    if let Some(found) = supplied::find(name) {
        return found.recipe().map_err(StudyError::input);
    }
    let path = Path::new(name);
    let text = std::fs::read_to_string(path).map_err(|error| {
        let names = supplied::ALL.map(|supplied| supplied.name).join(", ");
        StudyError::input(format!("{name}: {error}; a recipe is a file, or one of {names}"))
    })?;
    Recipe::parse(&text).map_err(|error| StudyError::input(format!("{name}: {error}")))
}

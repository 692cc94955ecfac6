//! Where tiles run, and whether they have room there; a machine of the user's that runs members: what is sent there, once for a run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use virtbench_lab::{
    Accelerator, DomainNetwork, GuestImage, GuestKernel, LabError, LibvirtAddress, LibvirtAppliances, Place,
    SshAppliances, SshHost, available_memory_bytes, check_ssh_host, connect_with_pool, find_kernel,
};
use virtbench_platforms::Platform;
use virtbench_recipe::Recipe;
use virtbench_record::{ApplianceFacts, GuestFacts, TilesFailureDetail, TilesHost, TilesPlan};
use virtbench_units::format_bytes;

use crate::guests::{ApplianceGuests, WantedAccelerator};
use crate::runner::event::Event;
use crate::runner::progress::Progress;
use crate::runner::steps::NoResult;
use crate::study_error::StudyError;

/// Where such a machine is, and what its members are on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAddress {
    /// A hypervisor, whose VMs they are.
    Hypervisor(LibvirtAddress, DomainNetwork),
    /// A machine on which they run natively.
    Machine(SshHost),
}

impl HostAddress {
    /// Reads `libvirt+URI[?pool=NAME][&network=NAME|&bridge=NAME]` or `ssh://[USER@]HOST[:PORT]/FOLDER?bridge=NAME`.
    ///
    /// # Errors
    /// It is no such address, in words.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.starts_with("ssh://") {
            return SshHost::parse(text).map(Self::Machine);
        }
        let (address, settings) = LibvirtAddress::parse(text).map_err(|error| error.to_string())?;
        Ok(Self::Hypervisor(address, DomainNetwork::parse(&settings)?))
    }

    /// Whether members are VMs there.
    #[must_use]
    pub fn has_vms(&self) -> bool {
        matches!(self, Self::Hypervisor(..))
    }

    /// As a plan has it.
    #[must_use]
    pub fn record(&self) -> TilesHost {
        match self {
            Self::Hypervisor(address, network) => TilesHost {
                address: address.to_string(),
                network: network.to_string(),
                elsewhere: address.host().is_some(),
            },
            Self::Machine(host) => {
                TilesHost { address: host.address().to_string(), network: host.network(), elsewhere: true }
            }
        }
    }
}

/// What a hypervisor's VMs boot.
#[derive(Debug)]
struct Boots {
    kernel: GuestKernel,
    image: GuestImage,
    accelerator: Option<Accelerator>,
}

/// A machine of the user's that runs members.
#[derive(Debug)]
pub struct TilesHosting {
    at: HostAddress,
    boots: Option<Boots>,
    prepared: OnceLock<HostAppliances>,
}

impl TilesHosting {
    /// Looks for what VMs boot, and whether the machine can be used, before anything else takes its time.
    ///
    /// # Errors
    /// Something is missing.
    pub fn find(
        at: HostAddress,
        wanted: WantedAccelerator,
        kernel: Option<&Path>,
    ) -> Result<Self, StudyError> {
        let failed = |why: String| StudyError::Environment(why.into());
        let boots = match &at {
            HostAddress::Hypervisor(address, _) => {
                connect_with_pool(address).map_err(failed)?;
                let kernel = find_kernel(kernel).map_err(LabError::from)?;
                let image = GuestImage::for_appliances(&kernel, &[], false).map_err(LabError::from)?;
                let accelerator = wanted.of_qemu()?;
                Some(Boots { kernel, image, accelerator })
            }
            HostAddress::Machine(host) => {
                check_ssh_host(host).map_err(|error| failed(error.to_string()))?;
                None
            }
        };
        Ok(Self { at, boots, prepared: OnceLock::new() })
    }

    /// The machine with these files on it, which are sent by the first who asks.
    pub(super) fn with(
        &self,
        files: &[PathBuf],
        progress: &mut Progress<'_>,
    ) -> Result<HostAppliances, StudyError> {
        if let Some(prepared) = self.prepared.get() {
            return Ok(prepared.clone());
        }
        let (stop, observer) = (progress.stop, &mut *progress.observer);
        let mut on_progress = |what: &str, done, total| observer.event(Event::Making { what, done, total });
        let prepared = match (&self.at, &self.boots) {
            (HostAddress::Hypervisor(address, network), Some(boots)) => LibvirtAppliances::prepare(
                (address, network),
                (&boots.kernel, &boots.image),
                boots.accelerator,
                files,
                stop,
                &mut on_progress,
            )
            .map(|prepared| HostAppliances::Domains(Arc::new(prepared))),
            (HostAddress::Machine(host), _) => SshAppliances::prepare(host, files, stop, &mut on_progress)
                .map(|prepared| HostAppliances::Natively(Arc::new(prepared))),
            (HostAddress::Hypervisor(..), None) => {
                return Err(StudyError::input("nothing was found that its VMs could boot: a defect"));
            }
        };
        let prepared = prepared.map_err(|error| match error {
            LabError::Stopped => StudyError::Stopped,
            error => error.into(),
        })?;
        Ok(self.prepared.get_or_init(|| prepared).clone())
    }

    /// The machine once it has what members are made of.
    pub(super) fn prepared(&self) -> Option<&HostAppliances> {
        self.prepared.get()
    }
}

/// A machine that has what members are made of.
#[derive(Debug, Clone)]
pub(super) enum HostAppliances {
    /// For VMs.
    Domains(Arc<LibvirtAppliances>),
    /// For members that run natively there.
    Natively(Arc<SshAppliances>),
}

impl HostAppliances {
    /// Where a member runs.
    pub(super) fn place(&self) -> Place {
        match self {
            Self::Domains(domains) => Place::Domain(Arc::clone(domains)),
            Self::Natively(machine) => Place::Ssh(Arc::clone(machine)),
        }
    }

    /// Memory of the machine, in bytes.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Domains(domains) => domains.memory_bytes(),
            Self::Natively(machine) => machine.memory_bytes(),
        }
    }

    /// What a reader should know of it.
    pub(super) fn notes(&self) -> Vec<String> {
        match self {
            Self::Domains(domains) => domains.notes(),
            Self::Natively(machine) => machine.notes(),
        }
    }

    /// What is known of a member's VM, if it is one.
    pub(super) fn guest_facts(&self, appliance: &ApplianceFacts) -> Option<GuestFacts> {
        match self {
            Self::Domains(domains) => Some(domains.guest_facts(appliance)),
            Self::Natively(_) => None,
        }
    }
}

/// Where members run.
#[derive(Debug)]
pub struct TilesPlace {
    /// What boots VMs; nothing natively.
    pub guests: Option<ApplianceGuests>,
    /// Where copies of the data go: a folder in this one, held while there is a measurement.
    pub parent: PathBuf,
    /// The name of the run, for that folder.
    pub name: String,
    /// The program that the generators are modes of: this one.
    pub program: PathBuf,
    /// Where the infrastructure load's operations are done, if there is one.
    pub platform: Option<Box<dyn Platform>>,
    /// The recipes of members that are there already, in the plan's order; nothing where this run starts them.
    pub existing: Option<Vec<Recipe>>,
    /// The machine of the user's that runs members; nothing where this host does.
    pub hosting: Option<TilesHosting>,
}

/// What a VM takes beside its own memory, in bytes, about.
const OF_A_VM: u64 = 64 << 20;

/// Why so many tiles have no room; nothing where they have, or the host does not say what is available.
pub(super) fn too_little_memory(plan: &TilesPlan, tiles: u32) -> Option<String> {
    if plan.is_elsewhere() {
        return None;
    }
    missing(plan, tiles, available_memory_bytes()?, "are available on this host")
}

/// The same for a machine elsewhere that has so much memory in all.
pub(super) fn more_than_all(plan: &TilesPlan, tiles: u32, all: u64) -> Option<String> {
    missing(plan, tiles, all, "is all that the machine has which runs members")
}

fn missing(plan: &TilesPlan, tiles: u32, available: u64, what: &str) -> Option<String> {
    let beside = if plan.vm { OF_A_VM.saturating_mul(plan.members.len() as u64) } else { 0 };
    let needed = plan.memory_of_a_tile().saturating_add(beside).saturating_mul(u64::from(tiles));
    // Whole MiB are what a reader can use.
    let shown = |bytes: u64| format_bytes(bytes >> 20 << 20);
    (needed > available).then(|| {
        format!(
            "{} need {} of memory, and {} {what}: ask for fewer, or give members less",
            tile_count(tiles),
            shown(needed),
            shown(available)
        )
    })
}

/// `1 tile`, `2 tiles`.
pub(super) fn tile_count(tiles: u32) -> String {
    format!("{tiles} {}", if tiles == 1 { "tile" } else { "tiles" })
}

/// Why a number of tiles has no result: a member did not get ready or did not run to the end.
pub(super) type TilesFailure = NoResult<TilesFailureDetail>;

impl TilesFailure {
    /// A member of a tile, from 1, failed.
    pub(super) fn member(tile: u32, member: &str, why: impl Into<String>) -> Self {
        let detail = TilesFailureDetail { tile: Some(tile), member: Some(member.to_owned()) };
        Self::Failed { why: why.into(), detail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_network_of_its_members_too() {
        let parse = |text: &str| HostAddress::parse(text).unwrap();
        let far = parse("libvirt+qemu+ssh://root@hv/system?pool=fast&bridge=br0");
        let record = far.record();
        assert!(far.has_vms() && record.elsewhere && record.address.ends_with("pool=fast"), "{record:?}");
        assert_eq!(record.network, "bridge br0");
        let here = parse("libvirt+qemu:///system").record();
        assert_eq!((here.elsewhere, here.network.as_str()), (false, "network default"));
        let wrong = HostAddress::parse("libvirt+qemu:///system?memory=1GiB").unwrap_err();
        assert!(wrong.contains("memory=1GiB: pool, and network or bridge"), "{wrong}");
        let metal = parse("ssh://root@metal/srv?bridge=br0");
        let record = metal.record();
        assert!(!metal.has_vms() && record.elsewhere, "{record:?}");
        assert_eq!(
            (record.address.as_str(), record.network.as_str()),
            ("ssh://root@metal/srv", "bridge br0")
        );
    }

    #[test]
    fn one_is_not_many() {
        assert_eq!([1, 2].map(tile_count), ["1 tile", "2 tiles"]);
    }
}

//! Appliances as domains of a hypervisor: their roots and data as volumes there, and their addresses by DHCP.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_libvirt::LibvirtError;
use virtbench_record::{ApplianceFacts, GuestFacts};

use super::address::LibvirtAddress;
use super::domain_xml::{DomainDisk, DomainNetwork, DomainSpec};
use super::machine::{Booted, Running};
use super::prepared::{GuestParts, Prepared};
use super::sign::{DISK, Label};
use super::storage::{Contents, Volumes};
use crate::adapters::{DEFAULT_ADAPTER, DiskSettings};
use crate::appliance::{ApplianceParts, appliance_guest_facts};
use crate::connection::{Connection, ConnectionError};
use crate::guest::{Accelerator, BOOT_LIMIT};
use crate::image::GuestImage;
use crate::kernel::GuestKernel;
use crate::machine::LabError;
use crate::process::MachineError;
use crate::remote::Alive;

/// A file that was uploaded.
#[derive(Debug)]
struct Uploaded {
    volume: String,
    length: u64,
}

/// A hypervisor that has what appliances are made of. Dropping it removes that.
#[derive(Debug)]
pub struct LibvirtAppliances {
    prepared: Prepared,
    network: DomainNetwork,
    kernel: String,
    files: BTreeMap<PathBuf, Uploaded>,
}

impl LibvirtAppliances {
    /// Connects, removes what killed runs have left, and uploads what guests of this kernel and image boot, and `files`: roots of
    /// appliances, and data that each gets a copy of. `on_progress` is told what is made, bytes done, and bytes in all.
    ///
    /// # Errors
    /// The hypervisor or its pool cannot be used, a file cannot be read, or `stop` was set. What was made is removed.
    pub fn prepare(
        (address, network): (&LibvirtAddress, &DomainNetwork),
        (kernel, image): (&GuestKernel, &GuestImage),
        accelerator: Option<Accelerator>,
        files: &[PathBuf],
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self, LabError> {
        let name = "libvirt";
        let (mut contents, mut uploaded) = (Vec::new(), BTreeMap::new());
        for path in files {
            if uploaded.contains_key(path) {
                continue;
            }
            let purpose = format!("{DISK}{}", uploaded.len());
            let one = Contents::of_file(&purpose, path).map_err(|error| LabError::Machine {
                machine: name.into(),
                source: MachineError::Start { program: path.display().to_string().into(), source: error },
            })?;
            uploaded.insert(path.clone(), (purpose, one.length));
            contents.push(one);
        }
        let wanted = GuestParts { name, address, kernel, image, accelerator };
        let prepared = Prepared::make(&wanted, contents, stop, on_progress)?;
        let volume = |(path, (purpose, length)): (PathBuf, (String, u64))| {
            (path, Uploaded { volume: prepared.volumes.name(&purpose), length })
        };
        let files = uploaded.into_iter().map(volume).collect();
        Ok(Self { prepared, network: network.clone(), kernel: kernel.release.clone(), files })
    }

    /// What a reader should know of it.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let (facts, [hypervisor, library]) = (&self.prepared.facts, &self.prepared.versions);
        let memory = virtbench_units::format_bytes(facts.memory_bytes >> 20 << 20);
        let own = format!(
            "{}: {hypervisor} by libvirt {library}: {}, {} processors, {memory}; addresses by DHCP on {}",
            self.prepared.address, facts.cpu, facts.processors, self.network
        );
        [own].into_iter().chain(self.prepared.notes.iter().cloned()).collect()
    }

    /// Memory of its machine, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.prepared.facts.memory_bytes
    }

    /// What is known of a guest that runs an appliance.
    #[must_use]
    pub fn guest_facts(&self, appliance: &ApplianceFacts) -> GuestFacts {
        let prepared = &self.prepared;
        let (accelerator, qemu) = (prepared.accelerator_facts(), prepared.software());
        appliance_guest_facts(appliance, accelerator, qemu, self.kernel.clone())
    }

    fn uploaded(&self, path: &Path) -> Result<&Uploaded, MachineError> {
        self.files.get(path).ok_or_else(|| MachineError::Unreachable {
            why: format!("{} was not uploaded: a defect", path.display()),
            console: Vec::new(),
        })
    }

    /// Boots a domain for an appliance, with a copy of its data: the root is its first disk, the data its second.
    pub(crate) fn boot(&self, parts: &ApplianceParts<'_>) -> Result<DomainAppliance, MachineError> {
        let prepared = &self.prepared;
        let failed = |error: LibvirtError| MachineError::Unreachable {
            why: format!("{}: {error}", prepared.address),
            console: Vec::new(),
        };
        let root = self.uploaded(parts.root)?;
        let label = Label::new();
        let shown = label.to_string();
        let account = Arc::clone(prepared.volumes.account());
        let mut own = Volumes::new(account, prepared.pool.clone(), label);
        if let Some(data) = parts.data {
            let from = self.uploaded(data)?;
            own.copy(DISK, &from.volume, from.length).map_err(failed)?;
        }
        let (settings, data) = (DiskSettings::default(), own.name(DISK));
        let disk = |volume, read_only| DomainDisk {
            adapter: DEFAULT_ADAPTER,
            settings: &settings,
            volume,
            read_only,
        };
        let disks: Vec<DomainDisk<'_>> = [disk(root.volume.as_str(), true)]
            .into_iter()
            .chain(parts.data.map(|_| disk(&data, false)))
            .collect();
        let domain = DomainSpec {
            vcpus: parts.vcpus,
            memory_bytes: parts.memory_bytes,
            disks: &disks,
            network: Some(&self.network),
            ..prepared.spec(&shown)
        };
        let Booted { running, connection, boot, .. } =
            Running::boot(&prepared.hypervisor, &domain.xml(), BOOT_LIMIT)?;
        let alive = Alive::begin(connection.sender())
            .map_err(|source| MachineError::Start { program: "a thread".into(), source })?;
        let xml = running.xml()?;
        tracing::info!(
            name = parts.name,
            domain = shown,
            boot_ms = boot.as_millis(),
            "the domain's agent answers"
        );
        let network = self.network.clone();
        Ok(DomainAppliance { running, connection, _alive: alive, boot, network, xml, _own: own })
    }
}

/// A domain that runs an appliance. Dropping it ends the domain and removes its data.
#[derive(Debug)]
pub(crate) struct DomainAppliance {
    running: Running,
    pub(crate) connection: Connection,
    _alive: Alive,
    pub(crate) boot: Duration,
    /// What it is on.
    pub(crate) network: DomainNetwork,
    /// Its description, as libvirt has it.
    pub(crate) xml: String,
    // They go after the domain, which is dropped first.
    _own: Volumes,
}

impl DomainAppliance {
    pub(crate) fn check(&self) -> Result<(), MachineError> {
        self.running.check()
    }

    pub(crate) fn explain(&self, error: ConnectionError) -> MachineError {
        self.running.explain(error)
    }

    /// Ends it in good order, within a time limit.
    pub(crate) fn shut_down(mut self) {
        self.running.power_off(&mut self.connection);
    }
}

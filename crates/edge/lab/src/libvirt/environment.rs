//! The environment: guests that a hypervisor runs from a pool of its.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use virtbench_record::GuestFacts;

use super::address::LibvirtAddress;
use super::domain_xml::{DomainDisk, DomainSpec};
use super::machine::{Booted, LibvirtMachine, Running};
use super::prepared::{GuestParts, Prepared};
use super::sign::DISK;
use super::storage::{Contents, Noise};
use crate::accelerator::KVM_LIMIT;
use crate::adapters::{Adapter, DiskSettings};
use crate::guest::{Accelerator, BOOT_LIMIT};
use crate::image::GuestImage;
use crate::kernel::GuestKernel;
use crate::machine::{Environment, LabError, Machine};
use crate::process::MachineError;
use crate::remote::Alive;

/// What guests of a hypervisor are made of.
#[derive(Debug, Clone)]
pub struct LibvirtGuest {
    /// Their kernel.
    pub kernel: GuestKernel,
    /// What they boot.
    pub image: GuestImage,
    /// Their disk's adapter, which [`check_disk`](super::check_disk) has let pass.
    pub adapter: &'static Adapter,
    /// What is set about it.
    pub settings: DiskSettings,
    /// Virtual processors.
    pub vcpus: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// What executes them; whatever works there where nothing is named.
    pub accelerator: Option<Accelerator>,
}

/// Loads are applied to the disk of a guest on somebody's hypervisor. Dropping it removes all that was made there.
#[derive(Debug)]
pub struct Libvirt {
    name: String,
    guest: LibvirtGuest,
    prepared: Prepared,
}

impl Libvirt {
    /// Connects, removes what killed runs have left, and uploads what guests need, a disk of `size_bytes` filled with
    /// random data among it. `on_progress` is told what is made, bytes done, and bytes in all.
    ///
    /// # Errors
    /// The hypervisor or its pool cannot be used, or `stop` was set. What was made is removed.
    pub fn prepare(
        name: &str,
        address: &LibvirtAddress,
        guest: LibvirtGuest,
        size_bytes: u64,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self, LabError> {
        let seed = u64::from(std::process::id());
        let source = Box::new(Noise::new(seed));
        let noise = Contents { purpose: DISK.into(), length: size_bytes, source };
        let wanted = GuestParts {
            name,
            address,
            kernel: &guest.kernel,
            image: &guest.image,
            accelerator: guest.accelerator,
        };
        let prepared = Prepared::make(&wanted, vec![noise], stop, on_progress)?;
        Ok(Self { name: name.to_owned(), guest, prepared })
    }

    fn boot(&self, limit: Duration) -> Result<Booted, MachineError> {
        let (guest, prepared) = (&self.guest, &self.prepared);
        let volume = prepared.volumes.name(DISK);
        let disk = DomainDisk {
            adapter: guest.adapter,
            settings: &guest.settings,
            volume: &volume,
            read_only: false,
        };
        let disks = [disk];
        let spec = DomainSpec {
            vcpus: guest.vcpus,
            memory_bytes: guest.memory_bytes,
            disks: &disks,
            ..prepared.spec(&prepared.label)
        };
        Running::boot(&prepared.hypervisor, &spec.xml(), limit)
    }

    /// Boots a guest; where something was left open and does not work there, with what does.
    fn boot_somehow(&mut self) -> Result<Booted, MachineError> {
        let mut booted = self.boot(self.limit());
        if let Err(error) = &booted
            && error.to_string().contains("io_uring")
            && let Some(aio) = self.guest.settings.replace_io_uring()
        {
            let aio = aio.name();
            self.prepared
                .notes
                .push(format!("{}: aio={aio} instead of io_uring, as was said there: {error}", self.name));
            booted = self.boot(self.limit());
        }
        // A KVM that does not offer the host's own processor may offer another.
        while let Err(error) = &booted
            && let Accelerator::Kvm(cpu) = self.prepared.accelerator
            && let Some(other) = cpu.next().filter(|_| !matches!(error, MachineError::Conversation { .. }))
        {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            let note = format!("{}: processor {} after {}: {first}", self.name, other.model(), cpu.model());
            self.prepared.notes.push(note);
            self.prepared.accelerator = Accelerator::Kvm(other);
            booted = self.boot(self.limit());
        }
        if let Err(error) = &booted
            && self.prepared.accelerator.is_kvm()
            && self.guest.accelerator.is_none()
        {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            self.prepared.accelerator = Accelerator::Tcg;
            self.prepared.why = format!("under KVM {first}; so it is emulated");
            self.prepared.notes.push(format!("{}: {}", self.name, self.prepared.why));
            booted = self.boot(self.limit());
        }
        booted
    }

    fn limit(&self) -> Duration {
        let is_probe = self.prepared.accelerator.is_kvm() && self.guest.accelerator.is_none();
        if is_probe { KVM_LIMIT } else { BOOT_LIMIT }
    }
}

impl Environment for Libvirt {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let name = self.name.clone();
        let failed = |source| LabError::of(&name, source);
        let Booted { running, connection, greeting, boot } = self.boot_somehow().map_err(failed)?;
        let alive = Alive::begin(connection.sender())
            .map_err(|source| MachineError::Start { program: "a thread".into(), source });
        let guest = GuestFacts {
            accelerator: self.prepared.accelerator_facts(),
            qemu: self.prepared.software(),
            kernel: greeting.kernel.clone(),
            vcpus: greeting.processors,
            memory_bytes: greeting.memory_bytes,
            adapter: self.guest.adapter.name.to_owned(),
            command_line: vec![running.xml().map_err(failed)?],
            boot_ns: u64::try_from(boot.as_nanos()).unwrap_or(u64::MAX),
            crossing: Some(greeting.crossing),
        };
        tracing::info!(
            name,
            boot_ms = boot.as_millis(),
            kernel = greeting.kernel,
            "the domain's agent answers"
        );
        Ok(Box::new(LibvirtMachine {
            name: name.clone(),
            running,
            connection,
            greeting,
            disk_prefix: self.guest.adapter.disk_prefix,
            hypervisor: self.prepared.hypervisor.clone(),
            facts: self.prepared.facts.clone(),
            guest,
            notes: self.prepared.notes.clone(),
            _alive: alive.map_err(failed)?,
        }))
    }
}

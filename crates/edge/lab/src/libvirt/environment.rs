//! The environment: guests that a hypervisor runs from a pool of its.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::system::uname;
use virtbench_libvirt::{Hypervisor, LibvirtError};
use virtbench_record::{AcceleratorFacts, GuestFacts, HostFacts};

use super::address::LibvirtAddress;
use super::domain_xml::DomainSpec;
use super::host::{self, Capabilities};
use super::label::{DISK, INITRAMFS, KERNEL, Label};
use super::machine::{Booted, LibvirtMachine, Running};
use super::storage::{Contents, Noise, Volumes, check_room, find_pool};
use super::sweep::sweep;
use crate::accelerator::KVM_LIMIT;
use crate::adapters::{Adapter, DiskSettings};
use crate::error::LabError;
use crate::guest::{Accelerator, BOOT_LIMIT};
use crate::image::GuestImage;
use crate::kernel::GuestKernel;
use crate::machine::{Environment, Machine};
use crate::process::MachineError;
use crate::remote::Alive;
use crate::tsc::host_tsc_khz;

/// The hypervisor that guests with an agent boot on.
const KIND: &str = "QEMU";

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
    // Before the connection goes.
    volumes: Volumes,
    hypervisor: Hypervisor,
    address: LibvirtAddress,
    label: String,
    kernel_path: String,
    initramfs_path: String,
    accelerator: Accelerator,
    /// How it was chosen.
    why: String,
    tsc_khz: Option<u64>,
    facts: HostFacts,
    versions: [String; 2],
    notes: Vec<String>,
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
        let unusable = |why: String| LabError::Machine {
            machine: name.to_owned(),
            source: MachineError::Unreachable { why, console: Vec::new() },
        };
        let failed = |error: LibvirtError| match error {
            LibvirtError::Stopped => LabError::Stopped,
            error => unusable(format!("{address}: {error}")),
        };
        let hypervisor = connect(address).map_err(unusable)?;
        let capabilities = capabilities(&hypervisor, address).map_err(unusable)?;
        let (accelerator, why) = choose(&capabilities, guest.accelerator, address).map_err(unusable)?;
        let pool = find_pool(&hypervisor, address).map_err(unusable)?;
        let swept = sweep(&hypervisor, &pool).map_err(failed)?;
        let boot = boot_files(&guest.kernel, &guest.image, accelerator)
            .map_err(|error| unusable(error.to_string()))?;
        let needed = boot.iter().map(|file| file.length).sum::<u64>() + size_bytes;
        check_room(&pool, address, needed).map_err(unusable)?;
        let versions = hypervisor.versions().map_err(failed)?;
        let facts = host::facts(&hypervisor, &versions[1], &capabilities, &pool).map_err(failed)?;
        let mut notes = Vec::new();
        if swept > 0 {
            notes
                .push(format!("{name}: removed {swept} domains and volumes that killed runs had left there"));
        }
        if let Err(error) = host::times(&hypervisor, facts.processors) {
            notes.push(format!("{name}: CPU use of its host is unavailable: {error}"));
        }
        let label = Label::new();
        let shown = label.to_string();
        let mut volumes = Volumes::new(address.clone(), pool, label);
        let seed = u64::from(std::process::id());
        let noise = Contents { purpose: DISK, length: size_bytes, source: Box::new(Noise::new(seed)) };
        let what = format!("uploading to {}", address.pool());
        let (mut before, mut paths) = (0, Vec::new());
        for contents in boot.into_iter().chain([noise]) {
            let length = contents.length;
            let path = volumes.add(contents, &mut |done, _| {
                on_progress(&what, before + done, needed);
                !stop.load(Ordering::Relaxed)
            });
            paths.push(path.map_err(failed)?);
            before += length;
        }
        let tsc_khz = capabilities.tsc_khz.or_else(|| address.host().is_none().then(host_tsc_khz).flatten());
        let mut paths = paths.into_iter();
        let mut next_path = || paths.next().unwrap_or_default();
        let (kernel_path, initramfs_path) = (next_path(), next_path());
        tracing::info!(name, %address, label = shown, "the hypervisor has all that guests need");
        Ok(Self {
            name: name.to_owned(),
            guest,
            volumes,
            hypervisor,
            address: address.clone(),
            label: shown,
            kernel_path,
            initramfs_path,
            accelerator,
            why,
            tsc_khz,
            facts,
            versions,
            notes,
        })
    }

    fn boot(&self, limit: Duration) -> Result<Booted, MachineError> {
        let system = uname();
        let controller = format!("process {} on {}", std::process::id(), system.nodename().to_string_lossy());
        let spec = DomainSpec {
            label: &self.label,
            controller: &controller,
            accelerator: self.accelerator,
            vcpus: self.guest.vcpus,
            memory_bytes: self.guest.memory_bytes,
            kernel: &self.kernel_path,
            initramfs: &self.initramfs_path,
            pool: self.address.pool(),
            disk: &self.volumes.name(DISK),
            adapter: self.guest.adapter,
            settings: &self.guest.settings,
            tsc_khz: self.tsc_khz,
        };
        Running::boot(&self.hypervisor, &spec.xml(), limit)
    }

    /// Boots a guest; where something was left open and does not work there, with what does.
    fn boot_somehow(&mut self) -> Result<Booted, MachineError> {
        let mut booted = self.boot(self.limit());
        if let Err(error) = &booted
            && error.to_string().contains("io_uring")
            && let Some(aio) = self.guest.settings.replace_io_uring()
        {
            let aio = aio.name();
            self.notes
                .push(format!("{}: aio={aio} instead of io_uring, as was said there: {error}", self.name));
            booted = self.boot(self.limit());
        }
        if let Err(error) = &booted
            && self.accelerator == Accelerator::Kvm
            && self.guest.accelerator.is_none()
        {
            let first = error.to_string().lines().next().unwrap_or_default().to_owned();
            self.accelerator = Accelerator::Tcg;
            self.why = format!("under KVM {first}; so it is emulated");
            self.notes.push(format!("{}: {}", self.name, self.why));
            booted = self.boot(self.limit());
        }
        booted
    }

    fn limit(&self) -> Duration {
        let is_probe = self.accelerator == Accelerator::Kvm && self.guest.accelerator.is_none();
        if is_probe { KVM_LIMIT } else { BOOT_LIMIT }
    }
}

impl Environment for Libvirt {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&mut self) -> Result<Box<dyn Machine>, LabError> {
        let name = self.name.clone();
        let failed = |source| LabError::Machine { machine: name.clone(), source };
        let Booted { running, connection, greeting, boot } = self.boot_somehow().map_err(failed)?;
        let alive = Alive::begin(connection.sender())
            .map_err(|source| MachineError::Start { program: "a thread".into(), source });
        let [hypervisor, library] = &self.versions;
        let guest = GuestFacts {
            accelerator: AcceleratorFacts { name: self.accelerator.name().into(), why: self.why.clone() },
            qemu: format!("{hypervisor}, by libvirt {library}"),
            kernel: greeting.kernel.clone(),
            vcpus: greeting.processors,
            memory_bytes: greeting.memory_bytes,
            adapter: self.guest.adapter.name.to_owned(),
            command_line: vec![running.xml().map_err(failed)?],
            boot_ns: u64::try_from(boot.as_nanos()).unwrap_or(u64::MAX),
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
            hypervisor: self.hypervisor.clone(),
            facts: self.facts.clone(),
            guest,
            notes: self.notes.clone(),
            _alive: alive.map_err(failed)?,
        }))
    }
}

/// # Errors
/// Says in words why there is no connection, and what to do.
pub(super) fn connect(address: &LibvirtAddress) -> Result<Hypervisor, String> {
    Hypervisor::open(address.connection()).map_err(|error| match error {
        LibvirtError::Missing { .. } => error.to_string(),
        error => format!(
            "{address} cannot be reached: {error}; `{} list` must work without asking for anything",
            address.virsh()
        ),
    })
}

/// # Errors
/// Says in words that no guest with an agent can run there.
pub(super) fn capabilities(
    hypervisor: &Hypervisor,
    address: &LibvirtAddress,
) -> Result<Capabilities, String> {
    let failed = |error: LibvirtError| format!("{address}: {error}");
    let kind = hypervisor.kind().map_err(failed)?;
    if kind != KIND {
        return Err(format!(
            "{address} is a hypervisor of kind {kind}, on which no guest with an agent boots: name one of QEMU, as \
             libvirt+qemu:///system, or reach a guest of its by ssh://"
        ));
    }
    let xml = hypervisor.capabilities().map_err(failed)?;
    let found = Capabilities::parse(&xml).unwrap_or_default();
    if found.kinds.is_empty() {
        return Err(format!("{address} runs no guests for x86_64: install qemu-system-x86 there"));
    }
    Ok(found)
}

/// # Errors
/// Says in words that what was asked for cannot be had.
pub(super) fn choose(
    capabilities: &Capabilities,
    wanted: Option<Accelerator>,
    address: &LibvirtAddress,
) -> Result<(Accelerator, String), String> {
    let offers = |kind: &str| capabilities.kinds.iter().any(|other| other == kind);
    match wanted {
        Some(Accelerator::Kvm) if !offers("kvm") => Err(format!(
            "{address}: accelerator=kvm, but it offers {} only: enable virtualization there, or leave it out",
            capabilities.kinds.join(", ")
        )),
        Some(accelerator) => Ok((accelerator, "named by the environment".into())),
        None if offers("kvm") => Ok((Accelerator::Kvm, "the hypervisor offers KVM".into())),
        None => Ok((Accelerator::Tcg, "the hypervisor does not offer KVM".into())),
    }
}

/// What a guest boots. Unpacking its kernel takes an emulated processor longer than all the rest of its boot; a real one
/// gets the smaller file.
pub(super) fn boot_files(
    kernel: &GuestKernel,
    image: &GuestImage,
    accelerator: Accelerator,
) -> io::Result<[Contents; 2]> {
    let kernel = match accelerator {
        Accelerator::Tcg => &image.kernel,
        Accelerator::Kvm => &kernel.image,
    };
    let (_lent, initramfs) = image.initramfs.lend()?;
    let contents = |purpose, path: &Path| {
        let file =
            File::open(path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        Ok::<_, io::Error>(Contents { purpose, length: file.metadata()?.len(), source: Box::new(file) })
    };
    Ok([contents(KERNEL, kernel)?, contents(INITRAMFS, &initramfs)?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accelerator_is_one_that_is_offered() {
        let (address, _) = LibvirtAddress::parse("libvirt+qemu:///system").unwrap();
        let chosen = |kinds: &[&str], wanted| {
            let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            choose(&Capabilities { kinds, ..Capabilities::default() }, wanted, &address)
        };
        assert_eq!(chosen(&["qemu", "kvm"], None).unwrap().0, Accelerator::Kvm);
        assert_eq!(chosen(&["qemu"], None).unwrap().0, Accelerator::Tcg);
        assert_eq!(chosen(&["qemu", "kvm"], Some(Accelerator::Tcg)).unwrap().0, Accelerator::Tcg);
        assert!(chosen(&["qemu"], Some(Accelerator::Kvm)).unwrap_err().contains("offers qemu only"));
    }
}

//! What is made on a hypervisor for guests of ours, kernel and initramfs as volumes and whatever else they need; also for domains that
//! the caller makes itself.

use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::system::uname;
use virtbench_libvirt::{Hypervisor, LibvirtError, Pool};
use virtbench_record::{AcceleratorFacts, HostFacts};

use super::address::LibvirtAddress;
use super::domain_xml::DomainSpec;
use super::host::{self, Capabilities};
use super::sign::{INITRAMFS, KERNEL, Label};
use super::storage::{Account, Contents, Volumes, check_room, find_pool};
use super::sweep::{SweepOf, remove_made};
use crate::clock::host_tsc_khz;
use crate::guest::{Accelerator, kernel_arguments};
use crate::image::GuestImage;
use crate::kernel::GuestKernel;
use crate::machine::LabError;
use crate::process::MachineError;
use crate::qemu::KvmCpu;

/// How long removing what killed runs have left may take.
const SWEEP_LIMIT: Duration = Duration::from_secs(600);

/// The hypervisor that guests with an agent boot on.
const KIND: &str = "QEMU";

/// What guests are to be made of, and where.
#[derive(Debug, Clone, Copy)]
pub(super) struct GuestParts<'a> {
    /// For errors and notes.
    pub(super) name: &'a str,
    pub(super) address: &'a LibvirtAddress,
    pub(super) kernel: &'a GuestKernel,
    pub(super) image: &'a GuestImage,
    /// Whatever works there where nothing is named.
    pub(super) accelerator: Option<Accelerator>,
}

/// What was made there. Dropping it removes it.
#[derive(Debug)]
pub(super) struct Prepared {
    // Before the connection goes.
    pub(super) volumes: Volumes,
    pub(super) hypervisor: Hypervisor,
    pub(super) pool: Pool,
    pub(super) address: LibvirtAddress,
    pub(super) label: String,
    controller: String,
    kernel_path: String,
    initramfs_path: String,
    pub(super) accelerator: Accelerator,
    /// How it was chosen.
    pub(super) why: String,
    tsc_khz: Option<u64>,
    pub(super) facts: HostFacts,
    /// The hypervisor's and libvirt's.
    pub(super) versions: [String; 2],
    pub(super) notes: Vec<String>,
}

impl Prepared {
    /// Connects, removes what killed runs have left, and uploads kernel, initramfs and `more`. `on_progress` is told what is made,
    /// bytes done, and bytes in all.
    ///
    /// # Errors
    /// The hypervisor or its pool cannot be used, or `stop` was set. What was made is removed.
    pub(super) fn make(
        wanted: &GuestParts<'_>,
        more: Vec<Contents>,
        stop: &AtomicBool,
        on_progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Self, LabError> {
        let GuestParts { name, address, kernel, image, accelerator } = *wanted;
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
        let (accelerator, why) = choose(&capabilities, accelerator, address).map_err(unusable)?;
        let pool = find_pool(&hypervisor, address).map_err(unusable)?;
        let until = Instant::now() + SWEEP_LIMIT;
        let swept = remove_made(&hypervisor, SweepOf::LeftOver, until).map_err(failed)?;
        let boot = boot_files(kernel, image, accelerator).map_err(|error| unusable(error.to_string()))?;
        let needed = boot.iter().chain(&more).map(|file| file.length).sum::<u64>();
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
        let account = Account::begin(address, &hypervisor, &pool, &label).map_err(failed)?;
        let mut volumes = Volumes::new(Arc::new(account), pool.clone(), label);
        let what = format!("uploading to {}", address.pool());
        let (mut before, mut paths) = (0, Vec::new());
        for contents in boot.into_iter().chain(more) {
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
        let system = uname();
        let controller = format!("process {} on {}", std::process::id(), system.nodename().to_string_lossy());
        Ok(Self {
            volumes,
            hypervisor,
            pool,
            address: address.clone(),
            label: shown,
            controller,
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

    /// What runs guests there.
    pub(super) fn software(&self) -> String {
        let [hypervisor, library] = &self.versions;
        format!("{hypervisor}, by libvirt {library}")
    }

    /// What executes their instructions, and why.
    pub(super) fn accelerator_facts(&self) -> AcceleratorFacts {
        AcceleratorFacts { name: self.accelerator.name().into(), why: self.why.clone() }
    }

    /// A domain with this label that has nothing yet.
    pub(super) fn spec<'a>(&'a self, label: &'a str) -> DomainSpec<'a> {
        DomainSpec {
            label,
            run: &self.volumes.account().run,
            controller: &self.controller,
            accelerator: self.accelerator,
            vcpus: 1,
            memory_bytes: 0,
            kernel: &self.kernel_path,
            initramfs: &self.initramfs_path,
            pool: self.address.pool(),
            disks: &[],
            network: None,
            tsc_khz: self.tsc_khz,
        }
    }
}

/// # Errors
/// Says in words why there is no connection, and what to do.
pub(super) fn connect(address: &LibvirtAddress) -> Result<Hypervisor, String> {
    Hypervisor::open(address.connection()).map_err(|error| match error {
        LibvirtError::Missing { .. } | LibvirtError::Static => error.to_string(),
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
        Some(Accelerator::Kvm(_)) if !offers("kvm") => Err(format!(
            "{address}: accelerator=kvm, but it offers {} only: enable virtualization there, or leave it out",
            capabilities.kinds.join(", ")
        )),
        Some(accelerator) => Ok((accelerator, "named by the environment".into())),
        None if offers("kvm") => Ok((Accelerator::Kvm(KvmCpu::Host), "the hypervisor offers KVM".into())),
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
        Accelerator::Kvm(_) => &kernel.image,
    };
    let (_lent, initramfs) = image.initramfs.lend()?;
    Ok([Contents::of_file(KERNEL, kernel)?, Contents::of_file(INITRAMFS, &initramfs)?])
}

/// What a guest boots on a hypervisor.
pub struct BootFiles {
    /// What executes it.
    pub accelerator: Accelerator,
    /// How that was chosen.
    pub why: String,
    /// What its kernel is told.
    pub arguments: String,
    /// Its kernel and its initramfs: lengths in bytes, and contents.
    pub files: [(u64, Box<dyn Read + Send>); 2],
}

/// Connects, whichever pools there are.
///
/// # Errors
/// Says in words why it cannot be reached, and what to do.
pub fn connect_to(address: &LibvirtAddress) -> Result<Hypervisor, String> {
    connect(address)
}

/// Connects, and finds the pool.
///
/// # Errors
/// Says in words why it cannot be used, and what to do.
pub fn connect_with_pool(address: &LibvirtAddress) -> Result<(Hypervisor, Pool), String> {
    let hypervisor = connect(address)?;
    let pool = find_pool(&hypervisor, address)?;
    Ok((hypervisor, pool))
}

/// What a guest of this image boots there.
///
/// # Errors
/// Says in words that no such guest can run there.
pub fn boot_files_for(
    hypervisor: &Hypervisor,
    address: &LibvirtAddress,
    kernel: &GuestKernel,
    image: &GuestImage,
    wanted: Option<Accelerator>,
) -> Result<BootFiles, String> {
    let found = capabilities(hypervisor, address)?;
    let (accelerator, why) = choose(&found, wanted, address)?;
    let tsc_khz = found.tsc_khz.or_else(|| address.host().is_none().then(host_tsc_khz).flatten());
    let files = boot_files(kernel, image, accelerator).map_err(|error| error.to_string())?;
    let files = files.map(|contents| (contents.length, contents.source));
    Ok(BootFiles { accelerator, why, arguments: kernel_arguments(accelerator, tsc_khz), files })
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
        assert_eq!(chosen(&["qemu", "kvm"], None).unwrap().0, Accelerator::Kvm(KvmCpu::Host));
        assert_eq!(chosen(&["qemu"], None).unwrap().0, Accelerator::Tcg);
        assert_eq!(chosen(&["qemu", "kvm"], Some(Accelerator::Tcg)).unwrap().0, Accelerator::Tcg);
        assert!(
            chosen(&["qemu"], Some(Accelerator::Kvm(KvmCpu::Host))).unwrap_err().contains("offers qemu only")
        );
    }
}

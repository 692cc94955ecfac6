//! Connects to a hypervisor, and puts there what all VMs of a run share.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use virtbench_lab::{
    Accelerator, GuestImage, GuestKernel, Label, LibvirtAddress, Noise, STAY, boot_files_for,
    connect_with_pool,
};
use virtbench_libvirt::{DomainEvents, Hypervisor, Pool};
use virtbench_record::{CloneKind, FailureKind, PlatformFacts};

use super::disks::{Disks, cannot_share};
use super::platform::{LibvirtPlatform, Other};
use super::refusals::failure;
use super::sweep::{is_left_over, remove};
use super::xml::{Boot, Format, Model, volume};
use crate::failure::Failure;

/// The hypervisor that has only the description of guests.
const TEST: &str = "TEST";
/// How long removing what killed runs have left may take.
const SWEEP_LIMIT: Duration = Duration::from_secs(600);

/// Is told what is made, bytes done, and bytes in all; answers whether to go on.
pub type OnUpload<'a> = dyn FnMut(&str, u64, u64) -> bool + 'a;

/// What the VMs of a run are made of.
#[derive(Debug, Clone)]
pub struct LibvirtOptions {
    /// Where VMs can be migrated to and back; it has the same storage.
    pub destination: Option<LibvirtAddress>,
    /// Memory of each, in bytes.
    pub memory_bytes: u64,
    /// Bytes of each disk, all of which are data.
    pub disk_bytes: u64,
    /// Ways in which clones are made.
    pub clones: Vec<CloneKind>,
    /// What has the storage clone a volume, for the shell: `$SOURCE` and `$TARGET` are names of volumes, `$SOURCE_PATH` and
    /// `$TARGET_PATH` where they are.
    pub array_command: Option<String>,
    /// What executes them; whatever the hypervisor offers where nothing is named.
    pub accelerator: Option<Accelerator>,
    /// The guests' kernel and what they boot; nothing on a hypervisor whose guests are not real.
    pub guest: Option<(GuestKernel, GuestImage)>,
}

impl LibvirtPlatform {
    /// Whether the guests of this hypervisor are real: not those of libvirt's test driver.
    ///
    /// # Errors
    /// It cannot be reached.
    pub fn has_real_guests(address: &LibvirtAddress) -> Result<bool, Failure> {
        let (hypervisor, _) = connect(address)?;
        Ok(hypervisor.kind().map_err(failure)? != TEST)
    }

    /// Connects, removes what killed runs have left there, and uploads what VMs share.
    ///
    /// # Errors
    /// The hypervisor, its pool or the destination cannot be used, or `on_upload` said no.
    pub fn connect(
        address: &LibvirtAddress,
        options: &LibvirtOptions,
        on_upload: &mut OnUpload<'_>,
    ) -> Result<Self, Failure> {
        let (hypervisor, pool) = connect(address)?;
        let other = options.destination.as_ref().map(|to| other(address, to)).transpose()?;
        let mut notes = sweep(&hypervisor, &pool)?;
        if let Some(other) = &other {
            notes.extend(sweep(&other.hypervisor, &other.pool)?);
        }
        let versions = hypervisor.versions().map_err(failure)?;
        let kind = hypervisor.kind().map_err(failure)?;
        let others = hypervisor.domains().map_err(failure)?.len();
        let mut facts = PlatformFacts {
            address: address.to_string(),
            software: format!("{kind} {}, by libvirt {}", versions[0], versions[1]),
            hosts: 1 + u32::from(other.is_some()),
            others: u32::try_from(others).unwrap_or(u32::MAX),
            notes,
        };
        let label = Label::new();
        let model = Model {
            kind: kind.to_lowercase(),
            label: label.to_string(),
            memory_bytes: options.memory_bytes,
            boot: None,
        };
        let events = listen(&hypervisor, &mut facts);
        let mut platform = Self {
            hypervisor,
            events,
            pool,
            other,
            label,
            model,
            facts: PlatformFacts::default(),
            disks: Disks {
                bytes: options.disk_bytes,
                base: None,
                ways: options.clones.clone(),
                command: options.array_command.clone(),
            },
            domains: Mutex::new(BTreeMap::new()),
        };
        platform.check_ways(address, &kind)?;
        let shared = if kind == TEST {
            facts.notes.push("libvirt's test driver: its guests are descriptions alone, nothing runs".into());
            Ok(())
        } else {
            platform.upload_shared(address, options, &mut facts, on_upload)
        };
        platform.facts = facts;
        shared.map(|()| platform)
    }

    /// Whether the pool has every way to clone.
    fn check_ways(&self, address: &LibvirtAddress, kind: &str) -> Result<(), Failure> {
        let unusable = |why: &str| Err(Failure::new(FailureKind::Unsupported, format!("{address}: {why}")));
        if kind == TEST && self.disks.are_raw() {
            return unusable("its volumes are descriptions alone: take --clone full or linked");
        }
        if !self.disks.shares() {
            return Ok(());
        }
        cannot_share(&self.pool, &self.label.to_string()).map_or(Ok(()), |why| unusable(&why))
    }

    fn upload_shared(
        &mut self,
        address: &LibvirtAddress,
        options: &LibvirtOptions,
        facts: &mut PlatformFacts,
        on_upload: &mut OnUpload<'_>,
    ) -> Result<(), Failure> {
        let unusable = |why: String| Failure::new(FailureKind::Unsupported, why);
        let Some((kernel, image)) = &options.guest else {
            return Err(unusable(format!("{address}: its guests need a kernel")));
        };
        let boot = boot_files_for(&self.hypervisor, address, kernel, image, options.accelerator)
            .map_err(unusable)?;
        let [kernel, initramfs] = boot.files;
        let kernel = self.upload("shared-kernel", kernel, on_upload)?;
        let initramfs = self.upload("shared-initramfs", initramfs, on_upload)?;
        let noise: Box<dyn Read + Send> = Box::new(Noise::new(1));
        self.disks.base = Some(self.upload("shared-disk", (self.disks.bytes, noise), on_upload)?);
        self.model.kind = match boot.accelerator {
            Accelerator::Kvm(_) => "kvm".into(),
            Accelerator::Tcg => "qemu".into(),
        };
        facts.notes.push(format!("VMs are executed by {}: {}", boot.accelerator.name(), boot.why));
        let arguments = format!("{} quiet {STAY}", boot.arguments);
        self.model.boot = Some(Boot { kernel, initramfs, arguments });
        Ok(())
    }

    /// Makes and fills a volume that all VMs share; where it is on the hypervisor's machine.
    fn upload(
        &self,
        purpose: &str,
        (length, source): (u64, Box<dyn Read + Send>),
        on_upload: &mut OnUpload<'_>,
    ) -> Result<String, Failure> {
        let name = format!("{}-{purpose}", self.label);
        let made = self.pool.create(&volume(&name, length, Format::Raw, None)).map_err(failure)?;
        let what = purpose.trim_start_matches("shared-");
        made.upload(source, length, &mut |done, all| on_upload(what, done, all)).map_err(failure)?;
        made.path().map_err(failure)
    }
}

/// Its events, or a note that there are none.
fn listen(hypervisor: &Hypervisor, facts: &mut PlatformFacts) -> Option<DomainEvents> {
    let events = hypervisor.events();
    let note = |error| {
        facts.notes.push(format!("it has no events, so that phases are told from calls alone: {error}"))
    };
    events.map_err(note).ok()
}

/// Removes what killed runs have left; a note of it.
fn sweep(hypervisor: &Hypervisor, pool: &Pool) -> Result<Vec<String>, Failure> {
    let swept =
        remove(hypervisor, pool, &is_left_over, None, Instant::now() + SWEEP_LIMIT).map_err(failure)?;
    if swept == 0 {
        return Ok(Vec::new());
    }
    tracing::info!(swept, "domains and volumes of runs that were killed are removed");
    Ok(vec![format!("removed {swept} domains and volumes that killed runs had left there")])
}

fn connect(address: &LibvirtAddress) -> Result<(Hypervisor, Pool), Failure> {
    connect_with_pool(address).map_err(|why| Failure::new(FailureKind::Unreachable, why))
}

/// The hypervisor that VMs are migrated to, once it is known to be another one with the same storage.
fn other(address: &LibvirtAddress, to: &LibvirtAddress) -> Result<Other, Failure> {
    let wrong = |why: &str| Failure::new(FailureKind::Unsupported, format!("--destination {to}: {why}"));
    if address.connection() == to.connection() {
        return Err(wrong("it is the hypervisor that VMs are to leave; name another one"));
    }
    let (hypervisor, pool) = connect(to)?;
    let over = to.host().is_none().then_some("tcp://127.0.0.1");
    let events = hypervisor.events().ok();
    let back = address.host().is_none().then_some("tcp://127.0.0.1");
    Ok(Other { hypervisor, events, pool, over, back })
}

//! Connects to a hypervisor, and puts there what all VMs of a run share.

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use virtbench_lab::{
    Accelerator, GuestImage, GuestKernel, Keeper, Label, LibvirtAddress, Noise, STAY, SweepOf,
    boot_files_for, check_free, connect_with_pool, folder_of, remove_made,
};
use virtbench_libvirt::{Hypervisor, Pool};
use virtbench_mark::RunId;
use virtbench_record::{CloneKind, FailureKind, PlatformFacts};

use super::guest::failure;
use super::platform::{LibvirtPlatform, Link, Other};
use super::xml::{Boot, Disks, Format, Model, cannot_share, tried_names, volume};
use crate::platform::Failure;

/// The hypervisor that has only the description of guests.
const TEST: &str = "TEST";
/// Volumes that all VMs share, by the ends of their names.
const SHARED: [&str; 3] = ["shared-kernel", "shared-initramfs", "shared-disk"];
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
        let (link, not_listened) = open_link(address, options.destination.as_ref())?;
        let hypervisor = &link.hypervisor;
        let mut notes = Vec::new();
        for one in link.hypervisors() {
            notes.extend(sweep(one)?);
        }
        notes.extend(not_listened);
        let versions = hypervisor.versions().map_err(failure)?;
        let kind = hypervisor.kind().map_err(failure)?;
        let others = hypervisor.domains().map_err(failure)?.len();
        let mut facts = PlatformFacts {
            address: address.to_string(),
            software: format!("{kind} {}, by libvirt {}", versions[0], versions[1]),
            hosts: 1 + u32::from(link.other.is_some()),
            others: u32::try_from(others).unwrap_or(u32::MAX),
            notes,
        };
        let label = Label::new();
        let model = Model {
            kind: kind.to_lowercase(),
            run: RunId::new_random(),
            memory_bytes: options.memory_bytes,
            boot: None,
        };
        let pool_xml = link.pool.xml().map_err(failure)?;
        let mut platform = Self {
            addresses: (address.clone(), options.destination.clone()),
            link: Mutex::new(Arc::new(link)),
            label,
            model,
            facts: PlatformFacts::default(),
            disks: Disks {
                bytes: options.disk_bytes,
                folder: folder_of(&pool_xml),
                base: None,
                ways: options.clones.clone(),
                command: options.array_command.clone(),
            },
            domains: Mutex::new(BTreeMap::new()),
            keeper: None,
            again: Mutex::default(),
        };
        if kind != TEST {
            platform.keeper = Some(platform.keep_account()?);
        }
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
        cannot_share(&self.link().pool, &self.label.to_string()).map_or(Ok(()), |why| unusable(&why))
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
        let boot = boot_files_for(&self.link().hypervisor, address, kernel, image, options.accelerator)
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

    /// Has a domain list what all VMs will share, before any of it is made.
    fn keep_account(&self) -> Result<Keeper, Failure> {
        let (link, shared) = (self.link(), SHARED.map(|purpose| format!("{}-{purpose}", self.label)));
        let names: Vec<String> = shared.into_iter().chain(tried_names(&self.label.to_string())).collect();
        names.iter().try_for_each(|name| check_free(&link.pool, name)).map_err(failure)?;
        let paths = names.iter().map(|name| self.disks.path(name)).collect();
        Keeper::define(&link.hypervisor, &self.label, &self.model.run, paths).map_err(failure)
    }

    /// Makes and fills a volume that all VMs share; where it is on the hypervisor's machine.
    fn upload(
        &self,
        purpose: &str,
        (length, source): (u64, Box<dyn Read + Send>),
        on_upload: &mut OnUpload<'_>,
    ) -> Result<String, Failure> {
        let name = format!("{}-{purpose}", self.label);
        let made = self.link().pool.create(&volume(&name, length, Format::Raw, None)).map_err(failure)?;
        let what = purpose.trim_start_matches("shared-");
        made.upload(source, length, &mut |done, all| on_upload(what, done, all)).map_err(failure)?;
        made.path().map_err(failure)
    }
}

/// Connects, to both where VMs migrate; with a note where there are no events.
pub(super) fn open_link(
    address: &LibvirtAddress,
    destination: Option<&LibvirtAddress>,
) -> Result<(Link, Option<String>), Failure> {
    let (hypervisor, pool) = connect(address)?;
    let other = destination.map(|to| other(address, to)).transpose()?;
    let events = hypervisor.events();
    let note = events
        .as_ref()
        .err()
        .map(|error| format!("it has no events, so that phases are told from calls alone: {error}"));
    let link = Link { hypervisor, events: events.ok(), pool, other, is_broken: AtomicBool::new(false) };
    Ok((link, note))
}

/// Removes what killed runs have left; a note of it.
fn sweep(hypervisor: &Hypervisor) -> Result<Vec<String>, Failure> {
    let swept = remove_made(hypervisor, SweepOf::LeftOver, Instant::now() + SWEEP_LIMIT).map_err(failure)?;
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
    let (hypervisor, _) = connect(to)?;
    let over = to.host().is_none().then_some("tcp://127.0.0.1");
    let events = hypervisor.events().ok();
    let back = address.host().is_none().then_some("tcp://127.0.0.1");
    Ok(Other { hypervisor, events, over, back })
}

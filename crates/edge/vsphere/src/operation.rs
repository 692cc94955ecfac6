//! Operations on VMs, as calls of the API.

use crate::cluster::Cluster;
use crate::effect::Effect;
use crate::inventory::{LABEL_KEY, Power};
use crate::reply::Reference;
use crate::request::{Arguments, Request};

/// An operation, and on what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Starts a VM, or lets one go on that stands still.
    PowerOn(&'a Reference),
    /// Ends a VM at once.
    PowerOff(&'a Reference),
    /// Pauses a VM.
    Suspend(&'a Reference),
    /// Makes a VM.
    Create {
        /// Its name.
        name: &'a str,
        /// Whose it is.
        own: Own<'a>,
        /// Its memory, and its disk's size.
        shape: Shape,
        /// Where it is made.
        cluster: &'a Cluster,
        /// On which host.
        host: &'a Reference,
    },
    /// Copies a VM; the copy is off.
    Clone {
        /// The VM that is copied.
        machine: &'a Reference,
        /// The copy's name.
        name: &'a str,
        /// Whose the copy is.
        own: Own<'a>,
        /// The copy's memory and another disk, where it is not to have those of the VM.
        shape: Shape,
        /// Where it is made.
        cluster: &'a Cluster,
        /// On which host.
        host: &'a Reference,
        /// A snapshot whose disks the copy shares; otherwise all is copied.
        linked: Option<&'a Reference>,
    },
    /// Moves a VM to another host.
    Migrate {
        /// The VM that moves.
        machine: &'a Reference,
        /// Where to.
        host: &'a Reference,
    },
    /// Moves a VM to another host, by the call that moves disks too.
    Relocate {
        /// The VM that moves.
        machine: &'a Reference,
        /// Where to.
        host: &'a Reference,
    },
    /// Removes a VM with its disks.
    Destroy(&'a Reference),
    /// Keeps a VM's state, without its memory.
    CreateSnapshot {
        /// The VM whose state is kept.
        machine: &'a Reference,
        /// The snapshot's name.
        name: &'a str,
    },
    /// Gives a kept state up.
    RemoveSnapshot {
        /// Of which VM.
        machine: &'a Reference,
        /// The snapshot that is given up.
        snapshot: &'a Reference,
    },
    /// Notes something of a VM.
    Reconfigure {
        /// The VM that is noted something of.
        machine: &'a Reference,
        /// The note.
        note: &'a str,
    },
    /// Writes anew whose a VM is.
    Mark {
        /// The VM.
        machine: &'a Reference,
        /// What is written.
        text: &'a str,
    },
    /// Makes a disk of a VM larger.
    GrowDisk {
        /// Of which VM.
        machine: &'a Reference,
        /// The disk as it is.
        disk: Disk,
        /// The file with its bytes.
        file: &'a str,
        /// Its size afterwards, in KiB.
        kib: u64,
    },
    /// Gives a VM another disk.
    AttachDisk {
        /// The VM that gets the disk.
        machine: &'a Reference,
        /// Where it is attached.
        slot: Slot,
        /// Its size in KiB.
        kib: u64,
    },
    /// Takes a disk away and deletes it.
    DetachDisk {
        /// Of which VM.
        machine: &'a Reference,
        /// The disk, by its key in the VM.
        disk: Disk,
    },
}

/// Says of a VM whose it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Own<'a> {
    /// What is written into its configuration under [`LABEL_KEY`].
    pub text: &'a str,
    /// The identity that it gets. A copy that somebody makes has the text and another identity.
    pub uuid: &'a str,
}

/// What a VM has. Nothing is what the VM has that it is copied from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Shape {
    /// Memory in MiB.
    pub memory_mib: Option<u64>,
    /// Size in KiB of a disk that it gets.
    pub disk_kib: Option<u64>,
}

/// Where a disk can be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// The controller's key.
    pub controller: i32,
    /// The number there.
    pub unit: i32,
}

/// A VM's disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// Its key.
    pub key: i32,
    /// Where it is attached.
    pub slot: Slot,
    /// Its size in KiB.
    pub kib: u64,
}

impl Operation<'_> {
    /// The method that it calls.
    #[must_use]
    pub fn method(&self) -> &'static str {
        match self {
            Self::PowerOn(_) => "PowerOnVM_Task",
            Self::PowerOff(_) => "PowerOffVM_Task",
            Self::Suspend(_) => "SuspendVM_Task",
            Self::Create { .. } => "CreateVM_Task",
            Self::Clone { .. } => "CloneVM_Task",
            Self::Migrate { .. } => "MigrateVM_Task",
            Self::Relocate { .. } => "RelocateVM_Task",
            Self::Destroy(_) => "Destroy_Task",
            Self::CreateSnapshot { .. } => "CreateSnapshot_Task",
            Self::RemoveSnapshot { .. } => "RemoveSnapshot_Task",
            Self::Reconfigure { .. }
            | Self::Mark { .. }
            | Self::GrowDisk { .. }
            | Self::AttachDisk { .. }
            | Self::DetachDisk { .. } => "ReconfigVM_Task",
        }
    }

    /// The object on which it is called.
    pub(crate) fn this(&self) -> &Reference {
        match self {
            Self::PowerOn(machine)
            | Self::PowerOff(machine)
            | Self::Suspend(machine)
            | Self::Destroy(machine) => machine,
            Self::Create { cluster, .. } => &cluster.folder,
            Self::RemoveSnapshot { snapshot, .. } => snapshot,
            Self::Clone { machine, .. }
            | Self::Migrate { machine, .. }
            | Self::Relocate { machine, .. }
            | Self::CreateSnapshot { machine, .. }
            | Self::Reconfigure { machine, .. }
            | Self::Mark { machine, .. }
            | Self::GrowDisk { machine, .. }
            | Self::AttachDisk { machine, .. }
            | Self::DetachDisk { machine, .. } => machine,
        }
    }

    /// The VM that shows its effect: what it makes, if it makes a VM.
    pub(crate) fn shown_by<'a>(&'a self, made: Option<&'a Reference>) -> Option<&'a Reference> {
        match self {
            Self::Create { .. } | Self::Clone { .. } => made,
            Self::RemoveSnapshot { machine, .. } => Some(machine),
            _ => Some(self.this()),
        }
    }

    /// What should be seen afterwards; the key of a new disk is not known yet.
    pub(crate) fn effect(&self, made: Option<&Reference>) -> Option<Effect> {
        Some(match self {
            Self::PowerOn(_) => Effect::Power(Power::On),
            Self::PowerOff(_) => Effect::Power(Power::Off),
            Self::Suspend(_) => Effect::Power(Power::Suspended),
            Self::Create { .. } | Self::Clone { .. } => Effect::Exists,
            Self::Migrate { host, .. } | Self::Relocate { host, .. } => Effect::On((*host).clone()),
            Self::Destroy(_) => Effect::Gone,
            Self::CreateSnapshot { .. } => Effect::Snapshot(made?.clone()),
            Self::RemoveSnapshot { snapshot, .. } => Effect::NoSnapshot((*snapshot).clone()),
            Self::Reconfigure { note, .. } => Effect::Note((*note).to_owned()),
            Self::AttachDisk { .. } | Self::Mark { .. } | Self::GrowDisk { .. } => return None,
            Self::DetachDisk { disk, .. } => Effect::Disk(disk.key, false),
        })
    }

    /// The call. Arguments are in the order of the API's description.
    pub(crate) fn request(&self) -> Request {
        Request::new(self.method(), self.this(), |xml| match self {
            Self::PowerOn(_) | Self::PowerOff(_) | Self::Suspend(_) | Self::Destroy(_) => {}
            Self::Create { name, own, shape, cluster, host } => {
                create(xml, (name, *own), *shape, cluster, host);
            }
            Self::Clone { name, own, shape, cluster, host, linked, .. } => {
                xml.reference("folder", &cluster.folder);
                xml.text("name", name);
                xml.group("spec", |xml| copy(xml, *own, *shape, (cluster, host), *linked));
            }
            Self::Mark { text, .. } => xml.group("spec", |xml| marked(xml, text)),
            Self::GrowDisk { disk, file, kib, .. } => grow(xml, *disk, file, *kib),
            Self::Migrate { host, .. } => {
                xml.reference("host", host);
                xml.text("priority", "defaultPriority");
            }
            Self::Relocate { host, .. } => xml.group("spec", |xml| xml.reference("host", host)),
            Self::CreateSnapshot { name, .. } => {
                xml.text("name", name);
                xml.text("memory", "false");
                xml.text("quiesce", "false");
            }
            Self::RemoveSnapshot { .. } => xml.text("removeChildren", "false"),
            Self::Reconfigure { note, .. } => xml.group("spec", |xml| xml.text("annotation", note)),
            Self::AttachDisk { slot, kib, .. } => disk(xml, ("add", "create"), -1, *slot, *kib),
            Self::DetachDisk { disk: old, .. } => {
                disk(xml, ("remove", "destroy"), old.key, old.slot, old.kib)
            }
        })
    }
}

fn marked(xml: &mut Arguments, text: &str) {
    xml.group("extraConfig", |xml| {
        xml.text("key", LABEL_KEY);
        xml.typed("value", Some("xsd:string"), text);
    });
}

/// Keys of devices that a VM gets, until the server gives them others.
const CONTROLLER: i32 = -1;
const DISK: i32 = -2;
/// Memory in MiB of a VM of which nothing is said.
const LITTLE_MIB: u64 = 64;

/// A VM with a controller for disks, and with one disk where it is to have one.
fn create(
    xml: &mut Arguments,
    (name, own): (&str, Own<'_>),
    shape: Shape,
    cluster: &Cluster,
    host: &Reference,
) {
    xml.group("config", |xml| {
        xml.text("name", name);
        xml.text("instanceUuid", own.uuid);
        xml.text("guestId", "otherGuest64");
        xml.group("files", |xml| xml.text("vmPathName", &format!("[{}]", cluster.datastore)));
        xml.text("numCPUs", "1");
        xml.text("memoryMB", &shape.memory_mib.unwrap_or(LITTLE_MIB).to_string());
        xml.group("deviceChange", |xml| {
            xml.text("operation", "add");
            xml.group_of("device", Some("ParaVirtualSCSIController"), |xml| {
                xml.text("key", &CONTROLLER.to_string());
                xml.text("busNumber", "0");
                xml.text("sharedBus", "noSharing");
            });
        });
        if let Some(kib) = shape.disk_kib {
            let slot = Slot { controller: CONTROLLER, unit: 0 };
            change_disk(xml, ("add", Some("create")), DISK, slot, (Some(""), kib));
        }
        marked(xml, own.text);
    });
    xml.reference("pool", &cluster.pool);
    xml.reference("host", host);
}

fn copy(
    xml: &mut Arguments,
    own: Own<'_>,
    shape: Shape,
    (cluster, host): (&Cluster, &Reference),
    linked: Option<&Reference>,
) {
    xml.group("location", |xml| {
        // A linked clone's disks lie where what they share does.
        if let (None, Some(store)) = (linked, &cluster.store) {
            xml.reference("datastore", store);
        }
        if linked.is_some() {
            xml.text("diskMoveType", "createNewChildDiskBacking");
        }
        xml.reference("pool", &cluster.pool);
        xml.reference("host", host);
    });
    xml.text("template", "false");
    xml.group("config", |xml| {
        xml.text("instanceUuid", own.uuid);
        if let Some(mib) = shape.memory_mib {
            xml.text("memoryMB", &mib.to_string());
        }
        marked(xml, own.text);
    });
    xml.text("powerOn", "false");
    linked.iter().for_each(|snapshot| xml.reference("snapshot", snapshot));
}

fn disk(xml: &mut Arguments, how: (&str, &str), key: i32, slot: Slot, kib: u64) {
    let file = (key < 0).then_some("");
    xml.group("spec", |xml| change_disk(xml, (how.0, Some(how.1)), key, slot, (file, kib)));
}

fn grow(xml: &mut Arguments, disk: Disk, file: &str, kib: u64) {
    xml.group("spec", |xml| change_disk(xml, ("edit", None), disk.key, disk.slot, (Some(file), kib)));
}

fn change_disk(
    xml: &mut Arguments,
    (operation, on_file): (&str, Option<&str>),
    key: i32,
    slot: Slot,
    (file, kib): (Option<&str>, u64),
) {
    xml.group("deviceChange", |xml| {
        xml.text("operation", operation);
        on_file.iter().for_each(|on_file| xml.text("fileOperation", on_file));
        xml.group_of("device", Some("VirtualDisk"), |xml| {
            xml.text("key", &key.to_string());
            if let Some(file) = file {
                xml.group_of("backing", Some("VirtualDiskFlatVer2BackingInfo"), |xml| {
                    xml.text("fileName", file);
                    xml.text("diskMode", "persistent");
                    xml.text("thinProvisioned", "true");
                });
            }
            xml.text("controllerKey", &slot.controller.to_string());
            xml.text("unitNumber", &slot.unit.to_string());
            xml.text("capacityInKB", &kib.to_string());
            if operation == "edit" {
                xml.text("capacityInBytes", &kib.saturating_mul(1024).to_string());
            }
        });
    });
}

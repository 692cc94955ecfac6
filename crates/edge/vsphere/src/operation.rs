//! Operations on VMs, as calls of the API.

use crate::cluster::Cluster;
use crate::effect::Effect;
use crate::inventory::{LABEL_KEY, Power};
use crate::reference::Reference;
use crate::request::{Arguments, Request};

/// An operation, and on what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Starts a VM, or lets one go on that stands still.
    PowerOn(&'a Reference),
    /// Ends a VM at once.
    PowerOff(&'a Reference),
    /// Lets a VM stand still.
    Suspend(&'a Reference),
    /// Makes a VM without a disk.
    Create {
        /// Its name.
        name: &'a str,
        /// The run that it belongs to.
        label: &'a str,
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
        /// The run that the copy belongs to.
        label: &'a str,
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
            Self::Reconfigure { .. } | Self::AttachDisk { .. } | Self::DetachDisk { .. } => "ReconfigVM_Task",
        }
    }

    /// The object on which it is called.
    fn this(&self) -> &Reference {
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

    /// What should be seen afterwards; of a new disk nobody knows the key yet.
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
            Self::AttachDisk { .. } => return None,
            Self::DetachDisk { disk, .. } => Effect::Disk(disk.key, false),
        })
    }

    /// The call. Arguments are in the order of the API's description.
    pub(crate) fn request(&self) -> Request {
        Request::new(self.method(), self.this(), |xml| match self {
            Self::PowerOn(_) | Self::PowerOff(_) | Self::Suspend(_) | Self::Destroy(_) => {}
            Self::Create { name, label, cluster, host } => create(xml, name, label, cluster, host),
            Self::Clone { name, label, cluster, host, linked, .. } => {
                xml.reference("folder", &cluster.folder);
                xml.text("name", name);
                xml.group("spec", |xml| copy(xml, label, cluster, host, *linked));
            }
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

/// The label that says whose a VM is.
fn marked(xml: &mut Arguments, label: &str) {
    xml.group("extraConfig", |xml| {
        xml.text("key", LABEL_KEY);
        xml.typed("value", Some("xsd:string"), label);
    });
}

/// A small VM that starts without a disk.
fn create(xml: &mut Arguments, name: &str, label: &str, cluster: &Cluster, host: &Reference) {
    xml.group("config", |xml| {
        xml.text("name", name);
        xml.text("guestId", "otherGuest64");
        xml.group("files", |xml| xml.text("vmPathName", &format!("[{}]", cluster.datastore)));
        xml.text("numCPUs", "1");
        xml.text("memoryMB", "64");
        xml.group("deviceChange", |xml| {
            xml.text("operation", "add");
            xml.group_of("device", Some("ParaVirtualSCSIController"), |xml| {
                xml.text("key", "-1");
                xml.text("busNumber", "0");
                xml.text("sharedBus", "noSharing");
            });
        });
        marked(xml, label);
    });
    xml.reference("pool", &cluster.pool);
    xml.reference("host", host);
}

fn copy(xml: &mut Arguments, label: &str, cluster: &Cluster, host: &Reference, linked: Option<&Reference>) {
    xml.group("location", |xml| {
        if linked.is_some() {
            xml.text("diskMoveType", "createNewChildDiskBacking");
        }
        xml.reference("pool", &cluster.pool);
        xml.reference("host", host);
    });
    xml.text("template", "false");
    xml.group("config", |xml| marked(xml, label));
    xml.text("powerOn", "false");
    linked.iter().for_each(|snapshot| xml.reference("snapshot", snapshot));
}

fn disk(xml: &mut Arguments, how: (&str, &str), key: i32, slot: Slot, kib: u64) {
    xml.group("spec", |xml| {
        xml.group("deviceChange", |xml| {
            xml.text("operation", how.0);
            xml.text("fileOperation", how.1);
            xml.group_of("device", Some("VirtualDisk"), |xml| {
                xml.text("key", &key.to_string());
                if key < 0 {
                    xml.group_of("backing", Some("VirtualDiskFlatVer2BackingInfo"), |xml| {
                        xml.text("fileName", "");
                        xml.text("diskMode", "persistent");
                        xml.text("thinProvisioned", "true");
                    });
                }
                xml.text("controllerKey", &slot.controller.to_string());
                xml.text("unitNumber", &slot.unit.to_string());
                xml.text("capacityInKB", &kib.to_string());
            });
        });
    });
}

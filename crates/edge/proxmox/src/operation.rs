//! What can be done with a VM, as calls.

use crate::effect::Effect;
use crate::inventory::{Place, Power};
use crate::session::{Call, encoded};

/// The controller of disks that are made and attached.
const CONTROLLER: &str = "scsi";

/// What a VM is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMachine<'a> {
    /// Its name.
    pub name: &'a str,
    /// What its description says.
    pub description: &'a str,
    /// Its tag.
    pub tag: &'a str,
    /// Memory in MiB.
    pub memory_mib: u64,
    /// The storage of its disk and the disk's size in GiB; none has no disk.
    pub disk: Option<(&'a str, u64)>,
    /// The bridge of its network card.
    pub bridge: Option<&'a str>,
    /// The pool that it is in.
    pub pool: Option<&'a str>,
}

/// An operation on a VM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Makes it at its place.
    Create(NewMachine<'a>),
    /// Makes a copy of it.
    Clone {
        /// The copy's number.
        into: u32,
        /// The copy's name.
        name: &'a str,
        /// What the copy's description says.
        description: &'a str,
        /// Whether disks are copied; else they lie on those of the template.
        full: bool,
        /// The pool that it is in.
        pool: Option<&'a str>,
        /// The storage of copied disks, where it is another one.
        storage: Option<&'a str>,
    },
    /// Starts it.
    Start,
    /// Takes the power away.
    Stop,
    /// Asks its guest to end.
    Shutdown,
    /// Lets it begin anew at once.
    Reset,
    /// Lets it stand still in memory.
    Suspend,
    /// Lets it go on.
    Resume,
    /// Moves it to another node, while it runs if it does.
    Migrate {
        /// The node.
        target: &'a str,
        /// Whether it runs.
        online: bool,
        /// Whether its disks have to be copied.
        with_disks: bool,
    },
    /// Removes it with its disks.
    Delete,
    /// Makes a snapshot of its disks.
    CreateSnapshot {
        /// Its name.
        name: &'a str,
    },
    /// Removes a snapshot.
    DeleteSnapshot {
        /// Its name.
        name: &'a str,
    },
    /// Goes back to a snapshot.
    Rollback {
        /// Its name.
        name: &'a str,
    },
    /// Moves a disk to another storage, and leaves no copy.
    MoveDisk {
        /// The disk, such as `scsi0`.
        disk: &'a str,
        /// Where to.
        storage: &'a str,
    },
    /// Makes a disk larger.
    ResizeDisk {
        /// The disk, such as `scsi0`.
        disk: &'a str,
        /// Its new size in MiB.
        mib: u64,
    },
    /// Changes what is written on it.
    Describe {
        /// Its description.
        description: &'a str,
        /// Its tags, separated by semicolons; none leaves them as they are.
        tags: Option<&'a str>,
    },
    /// Makes a disk for it.
    AttachDisk {
        /// Its number.
        slot: u32,
        /// Where it lies.
        storage: &'a str,
        /// Its size in MiB.
        mib: u32,
    },
    /// Takes a disk away and removes it.
    DetachDisk {
        /// Its number.
        slot: u32,
    },
}

impl Operation<'_> {
    /// The call that has it done.
    pub(crate) fn call(&self, place: &Place) -> Call {
        let node = format!("nodes/{}", encoded(&place.node));
        let vm = format!("{node}/qemu/{}", place.vmid);
        let post = |path: String| Call::of("POST", path, Vec::new());
        match self {
            Self::Create(new) => new.call(format!("{node}/qemu"), place.vmid),
            Self::Clone { into, name, description, full, pool, storage } => {
                let mut call = post(format!("{vm}/clone"))
                    .with("newid", into.to_string())
                    .with("name", *name)
                    .with("description", *description)
                    .with("full", u8::from(*full).to_string());
                call.arguments.extend(pool.map(|pool| ("pool", pool.to_owned())));
                let storage = storage.filter(|_| *full);
                call.arguments.extend(storage.map(|storage| ("storage", storage.to_owned())));
                call
            }
            Self::Start => post(format!("{vm}/status/start")),
            Self::Stop => post(format!("{vm}/status/stop")),
            Self::Shutdown => post(format!("{vm}/status/shutdown")),
            Self::Reset => post(format!("{vm}/status/reset")),
            Self::Suspend => post(format!("{vm}/status/suspend")),
            Self::Resume => post(format!("{vm}/status/resume")),
            Self::Migrate { target, online, with_disks } => {
                let mut call = post(format!("{vm}/migrate")).with("target", *target);
                if *online {
                    call = call.with("online", "1");
                    if *with_disks {
                        call = call.with("with-local-disks", "1");
                    }
                }
                call
            }
            Self::Delete => Call::of("DELETE", vm, Vec::new()),
            Self::CreateSnapshot { name } => post(format!("{vm}/snapshot")).with("snapname", *name),
            Self::DeleteSnapshot { name } => {
                Call::of("DELETE", format!("{vm}/snapshot/{}", encoded(name)), Vec::new())
            }
            Self::Rollback { name } => post(format!("{vm}/snapshot/{}/rollback", encoded(name))),
            Self::MoveDisk { disk, storage } => {
                let call = post(format!("{vm}/move_disk")).with("disk", *disk);
                call.with("storage", *storage).with("delete", "1")
            }
            Self::ResizeDisk { disk, mib } => {
                let call = Call::of("PUT", format!("{vm}/resize"), Vec::new()).with("disk", *disk);
                call.with("size", format!("{mib}M"))
            }
            Self::Describe { description, tags } => {
                let mut call = post(format!("{vm}/config")).with("description", *description);
                call.arguments.extend(tags.map(|tags| ("tags", tags.to_owned())));
                call
            }
            Self::AttachDisk { slot, storage, mib } => {
                let disk = format!("{storage}:{}", f64::from(*mib) / 1024.0);
                post(format!("{vm}/config")).with(slot_name(*slot), disk)
            }
            Self::DetachDisk { slot } => {
                post(format!("{vm}/config")).with("delete", slot_name(*slot)).with("force", "1")
            }
        }
    }

    /// The VM that shows that it is done, and what it shows. `runs`: whether the guest's agent is to answer.
    pub(crate) fn effect(&self, place: &Place) -> (Place, Effect) {
        let shown = |effect| (place.clone(), effect);
        let at = |node: &str, vmid| Place { node: node.to_owned(), vmid };
        match self {
            Self::Create(_) | Self::Rollback { .. } => shown(Effect::Exists),
            Self::MoveDisk { disk, storage } => {
                shown(Effect::DiskOn((*disk).to_owned(), (*storage).to_owned()))
            }
            Self::ResizeDisk { disk, mib } => shown(Effect::DiskOf((*disk).to_owned(), *mib)),
            Self::Clone { into, .. } => (at(&place.node, *into), Effect::Exists),
            Self::Start | Self::Resume | Self::Reset => shown(Effect::Power(Power::On)),
            Self::Stop | Self::Shutdown => shown(Effect::Power(Power::Off)),
            Self::Suspend => shown(Effect::Power(Power::Suspended)),
            Self::Migrate { target, .. } => (at(target, place.vmid), Effect::Exists),
            Self::Delete => shown(Effect::Gone),
            Self::CreateSnapshot { name } => shown(Effect::Snapshot((*name).to_owned(), true)),
            Self::DeleteSnapshot { name } => shown(Effect::Snapshot((*name).to_owned(), false)),
            Self::Describe { description, .. } => shown(Effect::Description((*description).to_owned())),
            Self::AttachDisk { slot, .. } => shown(Effect::Disk(slot_name(*slot), true)),
            Self::DetachDisk { slot } => shown(Effect::Disk(slot_name(*slot), false)),
        }
    }
}

impl NewMachine<'_> {
    fn call(&self, path: String, vmid: u32) -> Call {
        let mut call = Call::of("POST", path, Vec::new())
            .with("vmid", vmid.to_string())
            .with("name", self.name)
            .with("description", self.description)
            .with("tags", self.tag)
            .with("memory", self.memory_mib.to_string())
            .with("ostype", "l26");
        if let Some((storage, gib)) = self.disk {
            call = call.with("scsihw", "virtio-scsi-single").with(slot_name(0), format!("{storage}:{gib}"));
        }
        call.arguments.extend(self.bridge.map(|bridge| ("net0", format!("virtio,bridge={bridge}"))));
        call.arguments.extend(self.pool.map(|pool| ("pool", pool.to_owned())));
        call
    }
}

/// Names of places for disks.
pub(crate) fn slot_name(slot: u32) -> &'static str {
    const NAMES: [&str; 16] = [
        "scsi0", "scsi1", "scsi2", "scsi3", "scsi4", "scsi5", "scsi6", "scsi7", "scsi8", "scsi9", "scsi10",
        "scsi11", "scsi12", "scsi13", "scsi14", "scsi15",
    ];
    NAMES.get(slot as usize).copied().unwrap_or(NAMES[NAMES.len() - 1])
}

/// The first place that a VM with these settings has free.
pub(crate) fn free_slot<'a>(settings: impl Iterator<Item = &'a str>) -> Option<u32> {
    let taken: Vec<&str> = settings.filter(|name| name.starts_with(CONTROLLER)).collect();
    (1..16).find(|slot| !taken.contains(&slot_name(*slot)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_is_one_call_of_the_published_api() {
        let place = Place { node: "pve1".into(), vmid: 100 };
        let call = |operation: &Operation<'_>| {
            let call = operation.call(&place);
            let arguments: Vec<String> =
                call.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
            format!("{call} {}", arguments.join(" ")).trim_end().to_owned()
        };
        assert_eq!(call(&Operation::Start), "POST nodes/pve1/qemu/100/status/start");
        assert_eq!(call(&Operation::Delete), "DELETE nodes/pve1/qemu/100");
        let online = Operation::Migrate { target: "pve2", online: true, with_disks: true };
        assert_eq!(call(&online), "POST nodes/pve1/qemu/100/migrate target=pve2 online=1 with-local-disks=1");
        let linked = Operation::Clone {
            into: 101,
            name: "n",
            description: "d",
            full: false,
            pool: Some("p"),
            storage: Some("s"),
        };
        assert_eq!(
            call(&linked),
            "POST nodes/pve1/qemu/100/clone newid=101 name=n description=d full=0 pool=p",
            "a linked clone lies where its template does"
        );
        let disk = Operation::AttachDisk { slot: 1, storage: "local", mib: 128 };
        assert_eq!(call(&disk), "POST nodes/pve1/qemu/100/config scsi1=local:0.125");
        assert_eq!(linked.effect(&place).0.vmid, 101);
        let moved = Operation::MoveDisk { disk: "scsi0", storage: "fast" };
        assert_eq!(call(&moved), "POST nodes/pve1/qemu/100/move_disk disk=scsi0 storage=fast delete=1");
        let larger = Operation::ResizeDisk { disk: "scsi0", mib: 1040 };
        assert_eq!(call(&larger), "PUT nodes/pve1/qemu/100/resize disk=scsi0 size=1040M");
        let back = Operation::Rollback { name: "s1" };
        assert_eq!(call(&back), "POST nodes/pve1/qemu/100/snapshot/s1/rollback");
    }

    #[test]
    fn a_disk_goes_to_the_first_free_place_after_the_first() {
        assert_eq!(free_slot(["scsi0", "scsihw", "scsi1", "name"].into_iter()), Some(2));
        assert_eq!(free_slot([].into_iter()), Some(1));
        let all: Vec<&str> = (0..16).map(slot_name).collect();
        assert_eq!(free_slot(all.into_iter()), None);
    }
}

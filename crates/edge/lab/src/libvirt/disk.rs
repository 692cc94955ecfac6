//! A guest's disk in libvirt's words.

use quick_xml::escape::escape;
use thiserror::Error;

use crate::adapters::{Adapter, DiskSettings, Transport};

/// An adapter or a setting that a domain cannot have.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "{adapter}: {what}; adapters by libvirt are virtio-blk, virtio-scsi, ahci, pvscsi, lsi53c895a, mptsas1068 and megasas"
)]
pub struct NotByLibvirt {
    adapter: &'static str,
    /// What cannot be had.
    what: String,
}

/// How libvirt calls an adapter.
struct Bus {
    bus: &'static str,
    target: &'static str,
    /// The model of its SCSI controller.
    model: Option<&'static str>,
}

fn bus(adapter: &Adapter) -> Option<Bus> {
    let scsi = |model| Some(Bus { bus: "scsi", target: "sda", model: Some(model) });
    match adapter.name {
        "virtio-blk" => Some(Bus { bus: "virtio", target: "vda", model: None }),
        "ahci" => Some(Bus { bus: "sata", target: "sda", model: None }),
        "virtio-scsi" => scsi("virtio-scsi"),
        "pvscsi" => scsi("vmpvscsi"),
        "lsi53c895a" => scsi("lsilogic"),
        "mptsas1068" => scsi("lsisas1068"),
        "megasas" => scsi("lsisas1078"),
        _ => None,
    }
}

/// Whether a domain can have this disk.
///
/// # Errors
/// libvirt has no words for it.
pub fn check_disk(adapter: &'static Adapter, settings: &DiskSettings) -> Result<(), NotByLibvirt> {
    let refused = |what: &str| Err(NotByLibvirt { adapter: adapter.name, what: what.to_owned() });
    if adapter.transport == Transport::VhostUser {
        return refused("its server would have to run on the hypervisor's machine");
    }
    if bus(adapter).is_none() {
        return refused("libvirt gives a guest of this kind none");
    }
    if adapter.name == "megasas" && settings.depth.is_some() {
        return refused("libvirt sets no depth of it: leave depth out");
    }
    Ok(())
}

/// A disk of a domain, whose blocks are a volume of a pool.
#[derive(Debug, Clone, Copy)]
pub(super) struct DomainDisk<'a> {
    pub(super) adapter: &'static Adapter,
    pub(super) settings: &'a DiskSettings,
    /// The volume's name.
    pub(super) volume: &'a str,
    /// Whether the guest may only read it; others may have it as well then.
    pub(super) read_only: bool,
}

/// The elements of the disk with this number among the domain's, and of its controller.
pub(super) fn disk_xml(disk: &DomainDisk<'_>, pool: &str, number: u8) -> String {
    let DomainDisk { adapter, settings, volume, read_only } = *disk;
    let Some(Bus { bus, target, model }) = bus(adapter) else { return String::new() };
    let (pool, volume) = (escape(pool), escape(volume));
    let target = format!("{}{}", target.trim_end_matches('a'), char::from(b'a' + number));
    let read_only = if read_only { "<readonly/>" } else { "" };
    let mut queueing = String::new();
    let mut set = |name: &str, value: &str| queueing.push_str(&format!(" {name}='{value}'"));
    let on_controller = model.is_some();
    if let Some(queues) = settings.queues {
        set("queues", &queues.to_string());
    }
    if let Some(depth) = settings.depth {
        set(if on_controller { "cmd_per_lun" } else { "queue_size" }, &depth.to_string());
    }
    if settings.iothread == Some(true) {
        set("iothread", "1");
    }
    if let Some(packed) = settings.packed {
        set("packed", if packed { "on" } else { "off" });
    }
    let (of_disk, of_controller) =
        if on_controller { (String::new(), queueing) } else { (queueing, String::new()) };
    let io = settings.aio().name();
    let controller = model.map_or_else(String::new, |model| {
        let driver =
            if of_controller.is_empty() { String::new() } else { format!("<driver{of_controller}/>") };
        format!("    <controller type='scsi' index='0' model='{model}'>{driver}</controller>\n")
    });
    // Its driver passes over a disk without an address of its own.
    let address = if adapter.name == "mptsas1068" { "<wwn>5000000000000001</wwn>" } else { "" };
    format!(
        "    <disk type='volume' device='disk'>\n      <driver name='qemu' type='raw' cache='{}' io='{io}'{of_disk}/>\n      \
         <source pool='{pool}' volume='{volume}'/>\n      <target dev='{target}' bus='{bus}'/>{read_only}{address}\n    </disk>\n{controller}",
        settings.cache().name()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::{ADAPTERS, find_adapter};

    fn xml(adapter: &str, settings: &str) -> String {
        let (adapter, settings) = (find_adapter(adapter).unwrap(), DiskSettings::parse(settings).unwrap());
        disk_xml(&DomainDisk { adapter, settings: &settings, volume: "v", read_only: false }, "p", 0)
    }

    #[test]
    fn settings_stand_where_libvirt_looks_for_them() {
        let blk = xml("virtio-blk", "queues=2,depth=64,iothread=on,packed=on,aio=native");
        let driver = "cache='none' io='native' queues='2' queue_size='64' iothread='1' packed='on'/>";
        assert!(blk.contains(driver) && blk.contains("bus='virtio'") && !blk.contains("controller"), "{blk}");
        let scsi = xml("virtio-scsi", "queues=2,depth=64,cache=writeback,aio=threads");
        assert!(scsi.contains("cache='writeback' io='threads'/>"), "{scsi}");
        assert!(scsi.contains("model='virtio-scsi'><driver queues='2' cmd_per_lun='64'/>"), "{scsi}");
    }

    #[test]
    fn what_libvirt_has_no_words_for_is_refused() {
        let refused = |adapter: &str, settings: &str| {
            let settings = DiskSettings::parse(settings).unwrap();
            check_disk(find_adapter(adapter).unwrap(), &settings).err().map(|error| error.to_string())
        };
        for (adapter, word) in
            [("nvme", "gives a guest"), ("ide", "gives a guest"), ("vhost-user-blk", "server")]
        {
            assert!(refused(adapter, "").unwrap().contains(word), "{adapter}");
        }
        assert!(refused("megasas", "depth=32").unwrap().contains("leave depth out"));
        let by_libvirt = ADAPTERS.iter().filter(|adapter| refused(adapter.name, "").is_none()).count();
        assert_eq!(by_libvirt, 7);
    }
}

//! Domains, volumes and snapshots in libvirt's words.

use std::time::Duration;

use quick_xml::escape::escape;
use virtbench_lab::{Made, Purpose};
use virtbench_libvirt::Pool;
use virtbench_mark::RunId;
use virtbench_record::CloneKind;

/// What every domain of a run is made of.
#[derive(Debug, Clone)]
pub(super) struct Model {
    /// `kvm`, `qemu` or `test`.
    pub(super) kind: String,
    pub(super) run: RunId,
    pub(super) memory_bytes: u64,
    /// What a guest boots, as the hypervisor's machine has it; nothing where guests are not real.
    pub(super) boot: Option<Boot>,
}

/// Paths of a kernel and an initramfs, and what the kernel is told.
#[derive(Debug, Clone)]
pub(super) struct Boot {
    pub(super) kernel: String,
    pub(super) initramfs: String,
    pub(super) arguments: String,
}

/// How the bytes of a disk are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Raw,
    Qcow2,
}

impl Format {
    /// As libvirt names it, and as files of it end.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Qcow2 => "qcow2",
        }
    }
}

impl Model {
    /// A domain of this name with its disk at this path, which it lists as its own.
    pub(super) fn domain(&self, name: &str, (disk, format): (&str, Format)) -> String {
        let (kind, memory) = (&self.kind, self.memory_bytes.next_multiple_of(1 << 20));
        let name = escape(name);
        let made = Made::new(&self.run, Purpose::Vm, vec![disk.to_owned()]);
        let (element, uuid) = (made.element(), &made.uuid);
        let os = self.boot.as_ref().map_or_else(
            || "<type>hvm</type>".to_owned(),
            |boot| {
                format!(
                    "<type arch='x86_64' machine='q35'>hvm</type><kernel>{}</kernel><initrd>{}</initrd><cmdline>{}</cmdline>",
                    escape(&boot.kernel),
                    escape(&boot.initramfs),
                    escape(&boot.arguments)
                )
            },
        );
        let cpu = match kind.as_str() {
            "kvm" => "<cpu mode='host-passthrough' migratable='on'/>",
            "qemu" => "<cpu mode='custom' match='exact' check='none'><model>qemu64</model></cpu>",
            _ => "",
        };
        let disk = disk_xml((disk, format), "vda");
        format!(
            "<domain type='{kind}'>
  <name>{name}</name>
  <uuid>{uuid}</uuid>
  <title>virtbench, a VM that is managed</title>
  <description>new</description>
  <metadata>{element}</metadata>
  <memory unit='b'>{memory}</memory>
  <vcpu>1</vcpu>
  <os>{os}</os>
  <features><acpi/><apic/></features>
  {cpu}
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
    {disk}
    <controller type='usb' model='none'/>
    <serial type='pty'><target port='0'/></serial>
    <console type='pty'><target type='serial' port='0'/></console>
    <memballoon model='none'/>
  </devices>
</domain>
"
        )
    }
}

/// A disk at this path.
pub(super) fn disk_xml((path, format): (&str, Format), target: &str) -> String {
    format!(
        "<disk type='file' device='disk'><driver name='qemu' type='{}'/><source file='{}'/><target dev='{target}' bus='virtio'/></disk>",
        format.name(),
        escape(path)
    )
}

/// A volume; an overlay where it is backed by a path of bytes.
pub(super) fn volume(name: &str, bytes: u64, format: Format, backing: Option<&str>) -> String {
    let backing = backing.map_or_else(String::new, |path| {
        format!("<backingStore><path>{}</path><format type='raw'/></backingStore>", escape(path))
    });
    format!(
        "<volume><name>{}</name><capacity unit='bytes'>{bytes}</capacity><allocation unit='bytes'>0</allocation>\
         <target><format type='{}'/><permissions><mode>0600</mode></permissions></target>{backing}</volume>",
        escape(name),
        format.name()
    )
}

/// A snapshot of this name.
pub(super) fn snapshot(name: &str) -> String {
    format!("<domainsnapshot><name>{}</name></domainsnapshot>", escape(name))
}

/// Bytes of the volumes with which it is tried whether blocks are shared.
const TRIED_BYTES: u64 = 1 << 20;

/// How long that may take.
const TRIED_WITHIN: Duration = Duration::from_secs(60);

/// How the disks of a run are made.
#[derive(Debug, Clone, Default)]
pub(super) struct Disks {
    /// Bytes of each.
    pub(super) bytes: u64,
    /// The folder of their pool on the hypervisor's machine.
    pub(super) folder: String,
    /// Where the bytes are that all begin with.
    pub(super) base: Option<String>,
    /// Ways in which clones are made.
    pub(super) ways: Vec<CloneKind>,
    /// What has the storage clone a volume.
    pub(super) command: Option<String>,
}

impl Disks {
    /// Blocks are shared between raw files alone, and what clones by itself copies a file as it is: all ways then copy the same
    /// bytes. Otherwise a disk is an overlay of what all begin with.
    pub(super) fn are_raw(&self) -> bool {
        self.ways.iter().any(|way| matches!(way, CloneKind::Reflink | CloneKind::Array))
    }

    /// Where a volume of this name will be, so that it can be listed before it is made.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }

    /// The format of all but linked clones.
    pub(super) fn format(&self) -> Format {
        if self.are_raw() { Format::Raw } else { Format::Qcow2 }
    }

    /// Whether files of the pool are known to share blocks.
    pub(super) fn shares(&self) -> bool {
        self.ways.contains(&CloneKind::Reflink)
    }
}

/// The name of a VM's disk.
pub(super) fn disk_name(vm: &str, format: Format) -> String {
    format!("{vm}.{}", format.name())
}

/// Names of the volumes with which it is tried whether blocks are shared, of this label.
pub(super) fn tried_names(label: &str) -> [String; 2] {
    ["shares-from", "shares-to"].map(|name| format!("{label}-{name}.raw"))
}

/// Why a pool cannot share blocks between two files; tried with two small volumes of this label.
pub(super) fn cannot_share(pool: &Pool, label: &str) -> Option<String> {
    let made = |name: &str| volume(name, TRIED_BYTES, Format::Raw, None);
    let [from_name, to_name] = tried_names(label);
    let tried = (|| {
        let from = pool.create(&made(&from_name))?;
        let shared = pool.copy(&made(&to_name), &from, true, TRIED_WITHIN);
        from.delete()?;
        shared?.delete()
    })();
    tried.err().map(|error| {
        format!(
            "its pool cannot share blocks between two files, which --clone reflink needs ({error}): use a pool on XFS \
             (mkfs.xfs -m reflink=1) or Btrfs, or leave reflink out"
        )
    })
}

#[cfg(test)]
mod tests {
    use roxmltree::Document;

    use super::*;

    #[test]
    fn descriptions_are_xml_whatever_names_are_in_them() {
        let boot = Boot { kernel: "/it's".into(), initramfs: "/a&b".into(), arguments: "a<b".into() };
        let mut model =
            Model { kind: "qemu".into(), run: RunId::new_random(), memory_bytes: 1, boot: Some(boot) };
        for _ in 0..2 {
            let xml = model.domain("n", ("/pool/d & e", Format::Raw));
            let document = Document::parse(&xml).unwrap();
            let source = document.descendants().find(|node| node.has_tag_name("source")).unwrap();
            assert_eq!(source.attribute("file"), Some("/pool/d & e"));
            let made = Made::read(&xml).unwrap();
            assert_eq!((made.mark.run, made.volumes), (model.run.clone(), vec!["/pool/d & e".to_owned()]));
            model = Model { kind: "test".into(), boot: None, ..model };
        }
        assert!(Document::parse(&volume("a<", 7, Format::Qcow2, Some("/b&"))).is_ok());
        assert!(Document::parse(&snapshot("a<")).is_ok());
    }
}

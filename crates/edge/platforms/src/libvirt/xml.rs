//! Domains, volumes and snapshots in libvirt's words.

use quick_xml::escape::escape;
use virtbench_lab::{Made, Purpose};
use virtbench_mark::RunId;

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

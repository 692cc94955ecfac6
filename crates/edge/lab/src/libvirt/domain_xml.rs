//! A domain as libvirt wants it described: its processors, its disk, and what its network interface is on.

use std::fmt;

use quick_xml::escape::escape;
use thiserror::Error;
use virtbench_agent::WATCH;
use virtbench_agent::protocol::PORT_NAME;
use virtbench_mark::RunId;

use super::made::{Made, Purpose};
use crate::adapters::{Adapter, DiskSettings, Transport};
use crate::guest::{Accelerator, kernel_arguments};
use crate::qemu::KvmCpu;

/// What a domain is made of.
#[derive(Debug, Clone)]
pub(super) struct DomainSpec<'a> {
    /// Its name.
    pub(super) label: &'a str,
    /// The run that it belongs to.
    pub(super) run: &'a RunId,
    /// Who made it, for people.
    pub(super) controller: &'a str,
    pub(super) accelerator: Accelerator,
    pub(super) vcpus: u32,
    pub(super) memory_bytes: u64,
    /// Where the hypervisor's machine has them.
    pub(super) kernel: &'a str,
    pub(super) initramfs: &'a str,
    pub(super) pool: &'a str,
    pub(super) disks: &'a [DomainDisk<'a>],
    /// How others reach it, if they do.
    pub(super) network: Option<&'a DomainNetwork>,
    /// Frequency of the machine's time stamp counter, where it is known.
    pub(super) tsc_khz: Option<u64>,
}

impl DomainSpec<'_> {
    /// The description.
    pub(super) fn xml(&self) -> String {
        let (kind, cpu) = match self.accelerator {
            Accelerator::Kvm(KvmCpu::Host) => ("kvm", "<cpu mode='host-passthrough'/>"),
            Accelerator::Kvm(KvmCpu::HostWithoutCapabilities) => (
                "kvm",
                "<cpu mode='host-passthrough'><feature policy='disable' name='arch-capabilities'/></cpu>",
            ),
            Accelerator::Kvm(KvmCpu::Max) => ("kvm", "<cpu mode='maximum'/>"),
            // Emulated, string moves are not fast byte by byte.
            Accelerator::Tcg => (
                "qemu",
                "<cpu mode='maximum'><feature policy='disable' name='erms'/><feature policy='disable' name='fsrm'/></cpu>",
            ),
        };
        // Room for a second processor, for the reason that a guest of `qemu:` has it.
        let most = self.vcpus.max(2);
        let has_thread = self.disks.iter().any(|disk| disk.settings.iothread == Some(true));
        let iothreads = if has_thread { "  <iothreads>1</iothreads>\n" } else { "" };
        let arguments = format!("{} {WATCH}", kernel_arguments(self.accelerator, self.tsc_khz));
        let disks: String =
            self.disks.iter().zip(0..).map(|(disk, number)| disk_xml(disk, self.pool, number)).collect();
        let network = self.network.map(DomainNetwork::xml).unwrap_or_default();
        // Its volumes are listed by the run's keeper.
        let made = Made::new(self.run, Purpose::Guest, Vec::new());
        let (uuid, made) = (&made.uuid, made.element());
        let (label, controller) = (escape(self.label), escape(self.controller));
        let (vcpus, memory) = (self.vcpus, self.memory_bytes.next_multiple_of(1 << 20));
        let (kernel, initramfs, arguments) =
            (escape(self.kernel), escape(self.initramfs), escape(&arguments));
        format!(
            "<domain type='{kind}'>
  <name>{label}</name>
  <uuid>{uuid}</uuid>
  <title>virtbench, a guest that is measured</title>
  <description>Made by {controller}; it is removed when that ends.</description>
  <metadata>{made}</metadata>
  <memory unit='b'>{memory}</memory>
  <vcpu placement='static' current='{vcpus}'>{most}</vcpu>
{iothreads}  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <kernel>{kernel}</kernel>
    <initrd>{initramfs}</initrd>
    <cmdline>{arguments}</cmdline>
  </os>
  <features><acpi/><apic/></features>
  {cpu}
  <clock offset='utc'/>
  <on_poweroff>destroy</on_poweroff>
  <on_reboot>destroy</on_reboot>
  <on_crash>destroy</on_crash>
  <devices>
{disks}{network}    <controller type='usb' model='none'/>
    <serial type='pty'><target port='0'/></serial>
    <console type='pty'><target type='serial' port='0'/></console>
    <channel type='unix'><target type='virtio' name='{PORT_NAME}'/></channel>
    <memballoon model='none'/>
  </devices>
</domain>
"
        )
    }
}

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

/// What libvirt's own tools take where no network is named.
const DEFAULT: &str = "default";

/// What a domain's network interface is on: there it gets its address by DHCP, and there its clients reach it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DomainNetwork {
    /// A network of libvirt's, by its name.
    Network(String),
    /// A bridge of the hypervisor's machine.
    Bridge(String),
}

impl DomainNetwork {
    /// Reads what an address of a hypervisor says beside its pool: `network=NAME` or `bridge=NAME`, else libvirt's default network.
    ///
    /// # Errors
    /// It says something else, in words.
    pub fn parse(settings: &[(String, String)]) -> Result<Self, String> {
        let mut found = None;
        for (name, value) in settings {
            let network = match name.as_str() {
                "network" => Self::Network(value.clone()),
                "bridge" => Self::Bridge(value.clone()),
                _ => return Err(format!("{name}={value}: pool, and network or bridge, can be set")),
            };
            if value.is_empty() {
                return Err(format!("{name}= names none"));
            }
            if found.replace(network).is_some() {
                return Err("network and bridge: name one of both, once".into());
            }
        }
        Ok(found.unwrap_or_else(|| Self::Network(DEFAULT.into())))
    }

    /// The element of the interface.
    pub(super) fn xml(&self) -> String {
        let (kind, name) = match self {
            Self::Network(name) => ("network", name),
            Self::Bridge(name) => ("bridge", name),
        };
        // Without a program to boot from the network: it would cost time at every start.
        format!(
            "    <interface type='{kind}'><source {kind}='{}'/><model type='virtio'/><rom enabled='no'/></interface>\n",
            escape(name)
        )
    }
}

impl fmt::Display for DomainNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Network(name) => write!(f, "network {name}"),
            Self::Bridge(name) => write!(f, "bridge {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapters::{DiskSettings, find_adapter};

    fn disk(settings: &DiskSettings) -> DomainDisk<'_> {
        let adapter = find_adapter("virtio-scsi").unwrap();
        DomainDisk { adapter, settings, volume: "d", read_only: false }
    }

    fn spec<'a>(disks: &'a [DomainDisk<'a>]) -> DomainSpec<'a> {
        static RUN: std::sync::LazyLock<RunId> = std::sync::LazyLock::new(RunId::new_random);
        DomainSpec {
            label: "virtbench-x",
            run: &RUN,
            controller: "process 1 on a<b",
            accelerator: Accelerator::Tcg,
            vcpus: 1,
            memory_bytes: (96 << 20) + 1,
            kernel: "/pool/it's a kernel",
            initramfs: "/pool/initramfs",
            pool: "a & b",
            disks,
            network: None,
            tsc_khz: Some(2_100_000),
        }
    }

    #[test]
    fn a_description_is_xml_whatever_names_are_in_it() {
        let settings = DiskSettings::parse("iothread=on").unwrap();
        let xml = spec(&[disk(&settings)]).xml();
        let document = roxmltree::Document::parse(&xml).unwrap();
        let text = |name: &str| {
            document.descendants().find(|node| node.has_tag_name(name)).and_then(|node| node.text())
        };
        assert_eq!(text("kernel"), Some("/pool/it's a kernel"));
        assert_eq!(text("memory"), Some((97 << 20).to_string().as_str()));
        assert_eq!((text("vcpu"), text("iothreads")), (Some("2"), Some("1")));
        assert!(text("cmdline").unwrap().ends_with("tsc_early_khz=2100000 VIRTBENCH_WATCH=1"));
        let source = document.descendants().find(|node| node.has_tag_name("source")).unwrap();
        assert_eq!(source.attribute("pool"), Some("a & b"));
        let made = Made::read(&xml).unwrap();
        assert!(made.is_for(Purpose::Guest) && made.volumes.is_empty(), "{made:?}");
    }

    #[test]
    fn hardware_virtualization_passes_the_processor_on() {
        let settings = DiskSettings::default();
        let xml =
            DomainSpec { accelerator: Accelerator::Kvm(KvmCpu::Host), ..spec(&[disk(&settings)]) }.xml();
        assert!(xml.contains("<domain type='kvm'>") && xml.contains("host-passthrough"), "{xml}");
        assert!(!xml.contains("tsc_early_khz"), "{xml}");
    }

    #[test]
    fn one_of_several_has_a_disk_of_its_own_and_one_that_all_read() {
        let (settings, network) = (DiskSettings::default(), DomainNetwork::Bridge("br<0".into()));
        let virtio = DomainDisk { adapter: find_adapter("virtio-blk").unwrap(), ..disk(&settings) };
        let disks = [DomainDisk { read_only: true, ..virtio }, virtio];
        let spec = DomainSpec { network: Some(&network), ..spec(&disks) };
        let xml = spec.xml();
        let document = roxmltree::Document::parse(&xml).unwrap();
        let named = |name: &'static str| document.descendants().filter(move |node| node.has_tag_name(name));
        let targets: Vec<_> = named("target").filter_map(|node| node.attribute("dev")).collect();
        assert_eq!((targets, named("readonly").count()), (vec!["vda", "vdb"], 1));
        let bridge = named("interface").next().unwrap().children().find(|node| node.has_tag_name("source"));
        assert_eq!(bridge.unwrap().attribute("bridge"), Some("br<0"));
    }

    #[test]
    fn a_network_is_named_once_and_else_is_libvirts_default() {
        let parse = |settings: &[(&str, &str)]| {
            let owned = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            DomainNetwork::parse(&owned.collect::<Vec<_>>())
        };
        assert_eq!(parse(&[]), Ok(DomainNetwork::Network("default".into())));
        assert_eq!(parse(&[("bridge", "br0")]), Ok(DomainNetwork::Bridge("br0".into())));
        for (settings, word) in [
            (&[("vcpus", "2")][..], "pool, and network or bridge"),
            (&[("bridge", "")][..], "names none"),
            (&[("bridge", "a"), ("network", "b")][..], "one of both"),
        ] {
            assert!(parse(settings).unwrap_err().contains(word), "{settings:?}");
        }
    }
}

#[cfg(test)]
mod disk_tests {
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

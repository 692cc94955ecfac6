//! A domain as libvirt wants it described.

use quick_xml::escape::escape;
use virtbench_agent::WATCH;
use virtbench_agent::protocol::PORT_NAME;
use virtbench_mark::RunId;

use super::disk::{DomainDisk, disk_xml};
use super::made::{Made, Purpose};
use super::network::DomainNetwork;
use crate::guest::{Accelerator, kernel_arguments};
use crate::kvm_cpu::KvmCpu;

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
}

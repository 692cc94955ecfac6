//! The hypervisor's machine: what it is, what it can execute, and what its processors are busy with.

use std::time::Instant;

use roxmltree::{Document, Node};
use virtbench_libvirt::{Hypervisor, LibvirtError, Pool};
use virtbench_record::{DiskFacts, HostFacts};

use crate::cpu_times::FarTimes;

/// What libvirt does not tell.
const UNKNOWN: &str = "unavailable: libvirt does not tell";

/// What the hypervisor says it can do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// Kinds of domains that it runs for `x86_64`, such as `qemu` and `kvm`.
    pub(super) kinds: Vec<String>,
    /// Frequency of its time stamp counter, where it knows.
    pub(super) tsc_khz: Option<u64>,
    /// Its kind of processor, in libvirt's words.
    pub(super) processor: Option<String>,
}

impl Capabilities {
    pub(super) fn parse(xml: &str) -> Option<Self> {
        let document = Document::parse(xml).ok()?;
        let root = document.root_element();
        let is_x86 =
            |node: &Node<'_, '_>| node.has_tag_name("arch") && node.attribute("name") == Some("x86_64");
        let kinds = root.children().filter(|node| node.has_tag_name("guest")).filter(|guest| {
            let os = guest.children().find(|node| node.has_tag_name("os_type"));
            os.and_then(|os| os.text()) == Some("hvm")
        });
        let kinds = kinds
            .flat_map(|guest| guest.children().filter(is_x86))
            .flat_map(|arch| arch.children().filter(|node| node.has_tag_name("domain")))
            .filter_map(|domain| domain.attribute("type").map(str::to_owned));
        let counter = root
            .descendants()
            .find(|node| node.has_tag_name("counter") && node.attribute("name") == Some("tsc"));
        let hertz = counter.and_then(|node| node.attribute("frequency")?.parse::<u64>().ok());
        let host = root.children().find(|node| node.has_tag_name("host"));
        let cpu = host.and_then(|host| host.children().find(|node| node.has_tag_name("cpu")));
        let model = cpu.and_then(|cpu| cpu.children().find(|node| node.has_tag_name("model")));
        Some(Self {
            kinds: kinds.collect(),
            tsc_khz: hertz.map(|hertz| hertz / 1000).filter(|khz| *khz > 0),
            processor: model.and_then(|model| model.text()).map(str::to_owned),
        })
    }
}

/// What the machine is, with its version of libvirt and the pool that is measured.
pub(super) fn facts(
    hypervisor: &Hypervisor,
    library: &str,
    capabilities: &Capabilities,
    pool: &Pool,
) -> Result<HostFacts, LibvirtError> {
    let node = hypervisor.node()?;
    let host = hypervisor.host_name().unwrap_or_default();
    let firmware = hypervisor.system_information().ok().and_then(|xml| processor_in(&xml));
    Ok(HostFacts {
        kernel: UNKNOWN.into(),
        distribution: format!("libvirt {library} on {host}"),
        cpu: firmware.or_else(|| capabilities.processor.clone()).unwrap_or(node.processor),
        processors: node.processors,
        memory_bytes: node.memory_bytes,
        hypervisor: None,
        virtualization: None,
        tuning: None,
        disk: pool_facts(&pool.xml()?),
    })
}

/// A processor's name in what the firmware says.
fn processor_in(xml: &str) -> Option<String> {
    let document = Document::parse(xml).ok()?;
    let processor = document.descendants().find(|node| node.has_tag_name("processor"))?;
    let version = processor.children().find(|node| node.attribute("name") == Some("version"))?;
    version.text().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn pool_facts(xml: &str) -> DiskFacts {
    let Ok(document) = Document::parse(xml) else { return DiskFacts::default() };
    let kind = document.root_element().attribute("type").unwrap_or_default();
    let text = |outer: &str, inner: &str| {
        let outer = document.descendants().find(|node| node.has_tag_name(outer))?;
        outer.children().find(|node| node.has_tag_name(inner))?.text().map(str::to_owned)
    };
    DiskFacts {
        filesystem: format!("storage pool of kind {kind}"),
        device: text("target", "path"),
        ..DiskFacts::default()
    }
}

/// The accounts of the machine's processors.
pub(super) fn times(hypervisor: &Hypervisor, processors: u32) -> Result<FarTimes, LibvirtError> {
    let times = hypervisor.cpu_times()?;
    let of = |name: &str| times.iter().find(|(other, _)| other == name).map(|(_, ns)| *ns);
    match of("user").zip(of("kernel")) {
        Some((user_ns, kernel_ns)) => Ok(FarTimes { at: Instant::now(), user_ns, kernel_ns, processors }),
        None => Err(LibvirtError::Local("libvirt does not tell user and kernel apart there".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_name_the_kinds_of_domains_for_this_processor() {
        let xml = "<capabilities><host><cpu><arch>x86_64</arch><model>Skylake</model>\
            <counter name='tsc' frequency='2100000000' scaling='no'/></cpu></host>\
            <guest><os_type>hvm</os_type><arch name='i686'><domain type='odd'/></arch></guest>\
            <guest><os_type>hvm</os_type><arch name='x86_64'><emulator>/usr/bin/qemu</emulator>\
            <domain type='qemu'/><domain type='kvm'/></arch></guest>\
            <guest><os_type>exe</os_type><arch name='x86_64'><domain type='lxc'/></arch></guest></capabilities>";
        let found = Capabilities::parse(xml).unwrap();
        assert_eq!(found.kinds, ["qemu", "kvm"]);
        assert_eq!((found.tsc_khz, found.processor.as_deref()), (Some(2_100_000), Some("Skylake")));
        assert_eq!(Capabilities::parse("<capabilities/>"), Some(Capabilities::default()));
        assert_eq!(Capabilities::parse("<"), None);
    }

    #[test]
    fn the_pool_and_the_processor_are_named() {
        let pool = "<pool type='dir'><name>default</name><source/><target><path>/srv</path></target></pool>";
        let facts = pool_facts(pool);
        assert_eq!(facts.filesystem, "storage pool of kind dir");
        assert_eq!(facts.device.as_deref(), Some("/srv"));
        let firmware = "<sysinfo type='smbios'><processor><entry name='socket_destination'>0</entry>\
            <entry name='version'> Xeon </entry></processor></sysinfo>";
        assert_eq!(processor_in(firmware).as_deref(), Some("Xeon"));
        assert_eq!(processor_in("<sysinfo/>"), None);
    }
}

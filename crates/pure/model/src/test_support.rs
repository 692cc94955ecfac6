//! Made-up facts that more than one model's tests need.

use virtbench_record::{DiskFacts, HostFacts};

pub(crate) fn host(processors: u32) -> HostFacts {
    HostFacts {
        kernel: "k".into(),
        distribution: "d".into(),
        cpu: "c".into(),
        processors,
        memory_bytes: 1 << 30,
        hypervisor: None,
        disk: DiskFacts {
            filesystem: "ext4".into(),
            device: None,
            rotational: None,
            scheduler: None,
            write_cache: None,
        },
    }
}

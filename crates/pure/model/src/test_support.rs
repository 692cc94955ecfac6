//! Made-up facts and chance that more than one model's tests need.

use virtbench_record::{DiskFacts, HostFacts};
use virtbench_units::Random;

/// A normal variate (Box and Muller).
pub(crate) fn normal(random: &mut Random) -> f64 {
    (-2.0 * (1.0 - random.unit()).ln()).sqrt() * (std::f64::consts::TAU * random.unit()).cos()
}

pub(crate) fn host(processors: u32) -> HostFacts {
    HostFacts {
        kernel: "k".into(),
        distribution: "d".into(),
        cpu: "c".into(),
        processors,
        memory_bytes: 1 << 30,
        hypervisor: None,
        disk: DiskFacts { filesystem: "ext4".into(), ..DiskFacts::default() },
    }
}

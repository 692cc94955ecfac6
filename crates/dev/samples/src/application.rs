//! Invented measurements of an application.

use std::collections::BTreeMap;

use virtbench_record::{
    ApplianceSide, ApplicationKey, ApplicationLoad, ApplicationMeasured, ApplicationMetric, ApplicationPlan,
    ApplicationRecord, ApplicationTier, Better, NeighbourMeasured, Status, TierMeasured,
};

use crate::host::{appliance, host_use, path};

/// Redis natively and in a VM, alone and beside two others; requests a second and a response time.
pub fn plan() -> ApplicationPlan {
    let side = |name: &str, vm| ApplianceSide { name: name.into(), vm, vcpus: 1, memory_bytes: 256 << 20 };
    let metric = |name: &str, unit: &str, better| ApplicationMetric {
        name: name.into(),
        pattern: format!("{name} ([0-9.]+)"),
        unit: unit.into(),
        better,
    };
    ApplicationPlan {
        load: ApplicationLoad {
            appliance: "redis".into(),
            root: "00".into(),
            prepare: Vec::new(),
            client: ["redis-benchmark", "-h", "{host}", "-p", "{port}"].map(str::to_owned).to_vec(),
        },
        tiers: vec![ApplicationTier {
            name: "cache".into(),
            appliance: "redis".into(),
            root: "00".into(),
            prepare: Vec::new(),
        }],
        metrics: vec![metric("SET", "1/s", Better::Higher), metric("latency", "ms", Better::Lower)],
        limit_ns: 60_000_000_000,
        takes_ns: Some(5_000_000_000),
        sides: vec![side("native", false), side("vm", true)],
        repetitions: 3,
        neighbours: 2,
        neighbour: None,
        disk: "file".into(),
        seed: 1,
        accelerator: "tcg".into(),
        network: "user".into(),
    }
}

/// A line of the results, with so many requests a second.
pub fn record(side: &str, neighbours: u32, repetition: u32, rate: f64) -> ApplicationRecord {
    let appliance = appliance("redis", 4_000_000_000);
    let host = host_use(100.0, 90.0, 10.0);
    let measured = ApplicationMeasured {
        values: BTreeMap::from([("SET".into(), rate), ("latency".into(), 1000.0 / rate)]),
        elapsed_ns: 5_000_000_000,
        output: format!("SET {rate}"),
        host,
        tiers: vec![TierMeasured { name: "cache".into(), path: path(), appliance: appliance.clone() }],
        beside: vec![NeighbourMeasured { runs: 2, appliance: appliance.clone() }; neighbours as usize],
        appliance,
    };
    ApplicationRecord::new(
        ApplicationKey { side: side.into(), neighbours, repetition },
        0,
        Status::measured(measured),
    )
}

/// Natively 1000 to 1200 requests a second, in the VM a tenth of that; beside others half of it, on both.
pub fn records() -> Vec<ApplicationRecord> {
    let mut records = Vec::new();
    for repetition in 0..3 {
        for (side, scale) in [("native", 1.0), ("vm", 0.1)] {
            for (neighbours, part) in [(0, 1.0), (2, 0.5)] {
                let rate = (1000.0 + 100.0 * f64::from(repetition)) * scale * part;
                records.push(record(side, neighbours, repetition, rate));
            }
        }
    }
    records
}

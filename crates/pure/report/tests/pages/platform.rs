//! A study of a platform: four domains that are compared, adapters that are not, one that this host lacks, and a rule that fires.

use virtbench_record::{
    Better, ObservedDisk, Plan, PlatformDomain, PlatformObserved, PlatformPlan, PlatformRun, Provenance,
    Records, Sample, SamplesKey, SamplesMeasured, SamplesRecord, Status,
};

use virtbench_model::Margin;
use virtbench_model::platform::{PlatformRunOf, compare_platforms};
use virtbench_report::PlatformsPage;

use super::synthetic::described;
use virtbench_samples::host::host_use;

const DOMAINS: [(&str, f64); 4] =
    [("storage", 0.44), ("network", 0.2), ("memory", 0.97), ("processor", 0.98)];

pub fn study() -> (Provenance, Records) {
    (described(Plan::Platform(plan())), Records::Samples(records()))
}

/// The same twice, the second time with slower storage and a slower adapter.
pub fn compared() -> String {
    let (facts, plan, before) = (described(Plan::Platform(plan())), plan(), records());
    let mut after = records();
    let slower = |record: &&mut SamplesRecord| ["storage", "adapters"].contains(&record.key.side.as_str());
    for record in after.iter_mut().filter(slower) {
        let Status::Measured(measured) = &mut record.status else { continue };
        let moves = |sample: &&mut Sample| !sample.name.contains("(native)");
        measured.samples.iter_mut().filter(moves).for_each(|sample| sample.value *= 0.7);
    }
    let run = |records| PlatformRunOf { provenance: &facts, plan: &plan, records };
    let compared = compare_platforms([run(&before), run(&after)], Margin::default());
    PlatformsPage { compared: &compared, runs: ["runs/monday", "runs/tuesday"] }.html("0")
}

fn plan() -> PlatformPlan {
    let domain = |name: &str, absolute| PlatformDomain {
        name: name.into(),
        runs: ["native", "vm"]
            .map(|run| PlatformRun { name: run.into(), words: vec!["study".into()], place: Vec::new() })
            .into(),
        takes_ns: 1,
        absolute,
        left_out: None,
    };
    let mut domains: Vec<PlatformDomain> = DOMAINS.iter().map(|(name, _)| domain(name, false)).collect();
    domains.extend([domain("adapters", true), domain("operations", true)]);
    PlatformPlan {
        profile: "quick".into(),
        domains,
        repetitions: 3,
        weights: [].into(),
        accelerator: "kvm".into(),
        environments: Vec::new(),
        reference: None,
        seed: 1,
    }
}

fn records() -> Vec<SamplesRecord> {
    let mut records = Vec::new();
    let mut add = |side: &str, repetition, status| {
        records.push(SamplesRecord::new(SamplesKey { side: side.into(), repetition }, 0, status));
    };
    for repetition in 0..3 {
        for (side, ratio) in DOMAINS {
            let measured =
                measured(&["throughput", "requests"], ratio * (1.0 + 0.01 * f64::from(repetition)));
            add(side, repetition, Status::measured(measured));
        }
        add("adapters", repetition, Status::measured(adapters()));
    }
    let why = "libvirt+qemu:///system: no hypervisor answers; start libvirtd".to_owned();
    add("operations", 0, Status::Unavailable { why });
    records
}

fn measured(names: &[&str], ratio: f64) -> SamplesMeasured {
    let samples = names.iter().flat_map(|name| {
        let own = |side: &str, value| Sample::new(format!("{name} ({side})"), "1/s", Better::Higher, value);
        let ratio = Sample::new(format!("{name} (vm / native)"), "", Better::Higher, ratio);
        [own("native", 100.0), own("vm", 100.0 * ratio.value), ratio]
    });
    SamplesMeasured {
        samples: samples.collect(),
        host: Some(host_use(100.0, 60.0, 40.0)),
        notes: vec![
            "On this host a VM reaches so much of what is done natively, over all points and both ways."
                .into(),
        ],
        observed: Some(PlatformObserved::default()),
        ..SamplesMeasured::default()
    }
}

fn adapters() -> SamplesMeasured {
    let disk = |setup: &str, takes, cache: &str, mb: f64| ObservedDisk {
        setup: setup.into(),
        takes_at_once: Some(takes),
        outstanding: 16,
        write_cache: Some(cache.into()),
        throughput_bytes_per_s: mb * 1e6,
        writes_bytes_per_s: Some(mb * 1e6),
    };
    let disks = vec![
        disk("virtio-blk", 256, "write back", 100.0),
        disk("nvme", 1024, "write back", 130.0),
        disk("mptsas1068", 1, "write back", 40.0),
        disk("virtio-blk,cache=writethrough", 256, "write through", 25.0),
    ];
    let samples = vec![Sample::new("throughput (nvme, all points)", "B/s", Better::Higher, 130e6)];
    let observed = PlatformObserved { disks, ..PlatformObserved::default() };
    SamplesMeasured { samples, observed: Some(observed), ..SamplesMeasured::default() }
}

//! Invented samples of network paths.

use virtbench_record::{
    Better, NetworkPathKind, NetworkPlan, Plan, Sample, SamplesKey, SamplesMeasured, SamplesRecord,
    SidesPlan, Status, TimeCounts,
};

use crate::host::host_use;

/// Natively, by a tap device, and by one of the host's kernel.
pub fn plan() -> NetworkPlan {
    NetworkPlan {
        paths: vec![NetworkPathKind::Native, NetworkPathKind::Tap, NetworkPathKind::TapVhost],
        between: None,
        mtus: vec![1500],
        streams: 4,
        datagram_bytes: 64,
        ramp_ns: 200_000_000,
        time_ns: 1_000_000_000,
        repetitions: 3,
        vcpus: 1,
        memory_bytes: 256 << 20,
        pinned: true,
        accelerator: "tcg".into(),
        seed: 1,
    }
}

/// The plan as one of sides.
pub fn sides() -> SidesPlan {
    Plan::Network(plan()).sides().unwrap()
}

/// A line of the results, `scale` times as fast as natively.
pub fn record(side: &str, repetition: u32, scale: f64) -> SamplesRecord {
    let rate = (1e9 + 1e8 * f64::from(repetition)) * scale;
    let samples = vec![
        Sample::new("TCP to, 1 stream", "B/s", Better::Higher, rate),
        Sample::new("TCP from, 1 stream", "B/s", Better::Higher, 0.9 * rate),
        Sample::new("requests", "1/s", Better::Higher, 50_000.0 * scale),
        Sample::new("request time, median", "us", Better::Lower, 20.0 / scale),
        Sample::new("datagrams lost", "%", Better::Lower, 0.0),
    ];
    let at = |ns: f64| (ns / scale) as u64;
    let counts = vec![(at(10_000.0), 100), (at(11_000.0), 300)];
    let times = vec![TimeCounts { name: "request".into(), counts }];
    let measured = SamplesMeasured {
        samples,
        times,
        elapsed_ns: 9_000_000_000,
        host: Some(host_use(100.0, 60.0, 40.0)),
        observed: None,
        notes: Vec::new(),
    };
    let status = Status::measured(measured);
    SamplesRecord::new(SamplesKey { side: side.into(), repetition }, 0, status)
}

/// Three repetitions of two sides; the third side is not to be had here.
pub fn records() -> Vec<SamplesRecord> {
    let mut records = Vec::new();
    for repetition in 0..3 {
        records.push(record("native", repetition, 1.0));
        records.push(record("tap", repetition, 0.1));
        let why = "/dev/vhost-net: not found".to_owned();
        let status = Status::Unavailable { why };
        let side = "tap-vhost".to_owned();
        records.push(SamplesRecord::new(SamplesKey { side, repetition }, 0, status));
    }
    records
}

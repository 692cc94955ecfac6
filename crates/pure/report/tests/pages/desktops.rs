//! One to four desktops, whose operations take the longer the more there are.

use virtbench_record::{
    DesktopDone, DesktopGroup, DesktopNumbers, DesktopOperation, DesktopTimes, DesktopsKey, DesktopsMeasured,
    DesktopsPlan, DesktopsRecord, Plan, Provenance, Records, Status,
};
use virtbench_samples::host::host_use;
use virtbench_units::Random;

use super::synthetic::described;

const SECOND_NS: u64 = 1_000_000_000;
const OPERATIONS: u64 = 120;

pub fn study() -> (Provenance, Records) {
    let records = Records::Desktops((1..=4).map(record).collect());
    (described(Plan::Desktops(plan())), records)
}

fn plan() -> DesktopsPlan {
    let operation = |application: &str, operation: &str, group| DesktopOperation {
        application: application.into(),
        operation: operation.into(),
        group,
    };
    DesktopsPlan {
        recipe: "desktop".into(),
        root: "0".into(),
        addresses: Vec::new(),
        masks: Vec::new(),
        link: None,
        day: "office".into(),
        day_file: String::new(),
        operations: vec![
            operation("editor", "type a sentence", DesktopGroup::A),
            operation("browser", "open a page", DesktopGroup::B),
        ],
        limit_a_ns: SECOND_NS,
        limit_b_ns: 6 * SECOND_NS,
        share: 0.95,
        errors: 0.05,
        vm: false,
        desktops: DesktopNumbers::Given(vec![1, 2, 3, 4]),
        repetitions: 1,
        time_ns: 60 * SECOND_NS,
        vcpus: 1,
        memory_bytes: 1 << 30,
        seed: 1,
        accelerator: "auto".into(),
    }
}

fn record(desktops: u32) -> DesktopsRecord {
    let mut random = Random::new(u64::from(desktops));
    let mut done = |number: u64| {
        let operation = (number % 2) as u32;
        let base = f64::from(desktops).powf(1.5) * if operation == 0 { 0.15 } else { 0.6 };
        let latency_ns = (base * (0.7 + 0.6 * random.unit()) * 1e9) as u64;
        let times = DesktopTimes {
            latency_ns,
            first_change_ns: None,
            last_change_ns: Some(latency_ns * 11 / 10),
            inside_ns: Some(latency_ns * 9 / 10),
            around_ns: Some(latency_ns),
            video: None,
        };
        let user = (number % u64::from(desktops)) as u32;
        DesktopDone {
            user,
            operation,
            begun_ns: number * SECOND_NS / 2,
            storm: number < u64::from(desktops),
            times: Some(times),
            failed: None,
        }
    };
    let cpu_percent = 45.0 * f64::from(desktops);
    let host = host_use(cpu_percent, cpu_percent * 0.9, cpu_percent * 0.1);
    let measured = DesktopsMeasured {
        ready_ns: SECOND_NS,
        operations: (0..OPERATIONS * u64::from(desktops)).map(&mut done).collect(),
        gone: Vec::new(),
        restless: std::collections::BTreeMap::new(),
        echo: None,
        pictures: Vec::new(),
        client_cpu_ns: 1,
        elapsed_ns: 60 * SECOND_NS,
        host,
    };
    DesktopsRecord::new(DesktopsKey { desktops, repetition: 0 }, 0, Status::measured(measured))
}

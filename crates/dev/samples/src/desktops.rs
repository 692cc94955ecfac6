//! Desktops of invented users.

use virtbench_record::{
    DesktopDone, DesktopGone, DesktopGroup, DesktopNumbers, DesktopOperation, DesktopTimes, DesktopsKey,
    DesktopsMeasured, DesktopsPlan, DesktopsRecord, Status,
};

use crate::host::host_use;

const SECOND_NS: u64 = 1_000_000_000;

/// Users who open and modify, with the paper's limits.
pub fn plan(desktops: DesktopNumbers) -> DesktopsPlan {
    let operation = |operation: &str, group| DesktopOperation {
        application: "writer".into(),
        operation: operation.into(),
        group,
    };
    DesktopsPlan {
        recipe: "desktop".into(),
        root: String::new(),
        addresses: Vec::new(),
        masks: Vec::new(),
        link: None,
        day: "office".into(),
        day_file: String::new(),
        operations: vec![operation("open", DesktopGroup::B), operation("modify", DesktopGroup::A)],
        limit_a_ns: SECOND_NS,
        limit_b_ns: 6 * SECOND_NS,
        share: 0.95,
        errors: 0.05,
        vm: false,
        desktops,
        repetitions: 1,
        time_ns: 60 * SECOND_NS,
        vcpus: 1,
        memory_bytes: 1 << 28,
        seed: 1,
        accelerator: "auto".into(),
    }
}

/// Every user opens in half a second a desktop, and modifies in a fifth of a second a desktop.
pub fn record(desktops: u32, gone: usize) -> DesktopsRecord {
    let times = |latency_ns| {
        Some(DesktopTimes {
            latency_ns,
            first_change_ns: None,
            last_change_ns: Some(latency_ns),
            inside_ns: Some(latency_ns / 2),
            around_ns: Some(latency_ns),
            video: None,
        })
    };
    let done = |user, number: u32, storm| DesktopDone {
        user,
        operation: number % 2,
        begun_ns: 0,
        storm,
        times: times(u64::from(desktops) * SECOND_NS / if number.is_multiple_of(2) { 2 } else { 5 }),
        failed: None,
    };
    let operations =
        (0..desktops).flat_map(|user| (0..40).map(move |number| done(user, number, number < 2))).collect();
    let host = host_use(150.0, 100.0, 50.0);
    let measured = DesktopsMeasured {
        ready_ns: 0,
        operations,
        gone: (0..).take(gone).map(|user| DesktopGone { user, why: "lost".into() }).collect(),
        restless: std::collections::BTreeMap::new(),
        echo: None,
        pictures: Vec::new(),
        client_cpu_ns: 0,
        elapsed_ns: 60 * SECOND_NS,
        host,
    };
    DesktopsRecord::new(DesktopsKey { desktops, repetition: 0 }, 0, Status::measured(measured))
}

//! Invented measurements of a database.

use std::collections::BTreeMap;

use virtbench_record::{
    ApplianceSide, DatabaseKind, OltpKey, OltpMeasured, OltpMix, OltpOutcome, OltpPlan, OltpRecord,
    OltpSecond, OltpStep, OltpStudyPlan, OltpTransactions, OltpUsers, Quantity, Status,
};

use crate::host::{appliance, host_use};

/// Natively and in a VM.
pub fn plan() -> OltpStudyPlan {
    let side = |name: &str, vm| ApplianceSide { name: name.into(), vm, vcpus: 1, memory_bytes: 256 << 20 };
    OltpStudyPlan {
        database: DatabaseKind::PostgreSql,
        root: "00".into(),
        warehouses: 1,
        population_seed: 1,
        sides: vec![side("native", false), side("vm", true)],
        users: OltpUsers::Auto { most: 64 },
        repetitions: 3,
        ramp_up_ns: 5_000_000_000,
        search_ns: 5_000_000_000,
        time_ns: 10_000_000_000,
        mix: OltpMix::default(),
        think_factor: None,
        seed: 1,
        accelerator: "tcg".into(),
        network: "user".into(),
    }
}

/// What was seen of a side that did these transactions in each of ten seconds.
pub fn measured(users: u32, seconds: [u64; 10], idle_percent: f64) -> OltpMeasured {
    let series = seconds.iter().zip(0..).map(|(transactions, second)| OltpSecond {
        start_ns: second * 1_000_000_000,
        length_ns: 1_000_000_000,
        transactions: *transactions,
        new_orders: transactions * 45 / 100,
        p90_ns: None,
    });
    let all: u64 = seconds.iter().sum();
    let outcome = OltpOutcome {
        database: DatabaseKind::PostgreSql,
        server: "a test".into(),
        schema: "public".into(),
        warehouses: 1,
        population_seed: 1,
        plan: OltpPlan { users, ..OltpPlan::default() },
        elapsed_ns: 10_000_000_000,
        interrupted: false,
        ended_by: None,
        transactions_per_second: all as f64 / 10.0,
        new_orders_per_minute: all as f64 * 0.45 * 6.0,
        transactions: BTreeMap::from([("new_order".to_owned(), OltpTransactions::default())]),
        deferred: None,
        open_loop: None,
        error_kinds: BTreeMap::new(),
        series: series.collect(),
        own_cpu_ns: [0, 0],
        own_cpu_per_transaction_ns: None,
        busiest_thread_percent: 10.0,
        waited_percent: None,
        throttled_percent: None,
        late_starts: 0,
        driver_is_limit: false,
        conditions_held: vec![1, 2, 3, 4],
        conditions_broken: Vec::new(),
        conditions_unchecked: None,
        notes: Vec::new(),
    };
    OltpMeasured {
        outcome,
        appliance: appliance("postgresql", 7_000_000_000),
        host: host_use(100.0, 90.0, 10.0),
        known: BTreeMap::from([(Quantity::IdlePercent, idle_percent)]),
        unavailable: BTreeMap::from([(Quantity::CyclesPerTransaction, "no hardware counters".into())]),
        timeline: None,
        kvm_exits: BTreeMap::new(),
        no_kvm_exits: None,
    }
}

/// A line of the results.
pub fn record(side: &str, step: OltpStep, users: u32, repetition: u32, measured: OltpMeasured) -> OltpRecord {
    OltpRecord::new(OltpKey { side: side.into(), step, users, repetition }, 0, Status::measured(measured))
}

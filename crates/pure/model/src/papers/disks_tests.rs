#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small positive invented numbers"
)]

use virtbench_record::{PointRecord, PointStatus, Provenance, Records, ResultRow, Trial};
use virtbench_samples::grid::{described, plan};
use virtbench_samples::{configurations, grid};

use super::*;
use crate::papers::tests::{executed_by, judged, verdict};
use crate::test_support::{measured, record};

const BLOCKS: [u64; 3] = [4096, 16384, 65536];

const REPETITIONS: u32 = 3;

/// What one point is invented to do: operations a second, percent of a processor, nanoseconds an operation.
type Done = [f64; 3];

fn points(environments: &[&str], done: impl Fn(PointKey, &str) -> Done) -> Vec<PointRecord> {
    let mut records = Vec::new();
    for block_bytes in BLOCKS {
        for (read_percent, random_percent) in [(0, 0), (0, 100), (100, 0), (100, 100)] {
            let key = PointKey { block_bytes, read_percent, random_percent };
            for (environment, repetition) in
                environments.iter().flat_map(|name| (0..REPETITIONS).map(move |n| (name, n)))
            {
                let [iops, cpu_percent, latency_ns] = done(key, environment);
                let mut one = measured(iops, cpu_percent);
                one.outcome.total.bytes_per_second = iops * block_bytes as f64;
                one.outcome.total.operations = 1;
                let mut latency = virtbench_units::LatencyRecorder::new();
                latency.record(latency_ns as u64);
                one.outcome.total.latency_ns = latency.summary();
                records.push(record(key, environment, repetition, PointStatus::Measured(Box::new(one))));
            }
        }
    }
    records
}

/// A run natively, at 10,000 to 40,000 operations a second by the kind of access, and in a VM at this share of that.
pub(in crate::papers) fn native_and_vm(share: impl Fn(PointKey) -> f64) -> [(Provenance, Records); 1] {
    let native = |key: PointKey| {
        1e4 * (1.0 + f64::from(key.read_percent) / 100.0 + f64::from(100 - key.random_percent) / 50.0)
    };
    let records = points(&["native", "vm"], |key, environment| {
        [native(key) * if environment == "vm" { share(key) } else { 1.0 }, 50.0, 1e5]
    });
    [(
        executed_by("tcg", grid::provenance(plan(&BLOCKS, &[0, 100], &[0, 100], REPETITIONS))),
        Records::Points(records),
    )]
}

fn size_rank(key: PointKey) -> f64 {
    (key.block_bytes as f64 / 4096.0).log2()
}

#[test]
fn a_vm_close_to_native_and_one_far_from_it_are_told_apart() {
    assert_eq!(verdict("close-to-native", &native_and_vm(|_| 0.95)), ClaimVerdict::Holds);
    assert_eq!(verdict("close-to-native", &native_and_vm(|_| 0.4)), ClaimVerdict::Fails);
}

#[test]
fn a_surface_keeps_its_shape_or_loses_it() {
    assert_eq!(verdict("one-shape", &native_and_vm(|_| 0.3)), ClaimVerdict::Holds);
    let upside_down = |key: PointKey| {
        1.0 / (1.0 + size_rank(key) * size_rank(key) * 50.0) / f64::from(1 + key.read_percent)
    };
    assert_eq!(verdict("one-shape", &native_and_vm(upside_down)), ClaimVerdict::Fails);
}

#[test]
fn a_loss_falls_with_the_size_rises_with_it_or_is_open() {
    assert_eq!(
        verdict("loss-falls-with-size", &native_and_vm(|key| 0.3 + 0.1 * size_rank(key))),
        ClaimVerdict::Holds
    );
    assert_eq!(
        verdict("loss-falls-with-size", &native_and_vm(|key| 0.9 - 0.1 * size_rank(key))),
        ClaimVerdict::Fails
    );
    // Sequential accesses gain what random ones lose.
    let mixed = |key: PointKey| 0.5 + if key.random_percent == 0 { 0.05 } else { -0.05 } * size_rank(key);
    assert_eq!(verdict("loss-falls-with-size", &native_and_vm(mixed)), ClaimVerdict::Open);
}

#[test]
fn random_reads_lose_least_or_not() {
    let reads = |best: f64| {
        move |key: PointKey| if (key.read_percent, key.random_percent) == (100, 100) { best } else { 0.5 }
    };
    assert_eq!(verdict("random-reads-lose-least", &native_and_vm(reads(0.8))), ClaimVerdict::Holds);
    assert_eq!(verdict("random-reads-lose-least", &native_and_vm(reads(0.4))), ClaimVerdict::Fails);
}

#[test]
fn each_platform_of_one_run_is_judged_by_itself() {
    let both = GridPlan {
        environments: ["native", "uml", "tcg"].map(String::from).into(),
        ..plan(&BLOCKS, &[0, 100], &[0, 100], REPETITIONS)
    };
    let records = points(&["native", "uml", "tcg"], |_, environment| {
        [if environment == "tcg" { 2000.0 } else { 1e4 }, 50.0, 1e5]
    });
    let run = [(grid::provenance(both), Records::Points(records))];
    let expected = [("UML".to_owned(), ClaimVerdict::Holds), ("TCG".to_owned(), ClaimVerdict::Fails)];
    assert_eq!(judged("close-to-native", &run), expected);
}

/// Two adapters, of which the second does so many times the first's operations, at so many times its cost.
pub(in crate::papers) fn two_adapters(
    rate: f64,
    cost: f64,
    done: impl Fn(PointKey) -> Done,
) -> [(Provenance, Records); 1] {
    let names = ["virtio-blk", "lsi53c895a"];
    let adapters = GridPlan {
        environments: names.map(String::from).into(),
        ..plan(&BLOCKS, &[0, 100], &[0, 100], REPETITIONS)
    };
    let records = points(&names, |key, environment| {
        let [iops, cpu_percent, latency_ns] = done(key);
        if environment == names[0] {
            [iops, cpu_percent, latency_ns]
        } else {
            [iops * rate, cpu_percent * cost * rate, latency_ns]
        }
    });
    [(described(Plan::Adapters(adapters)), Records::Points(records))]
}

/// Sequential work three times as fast, at one cost an operation; larger blocks take longer.
fn as_in_the_paper(key: PointKey) -> Done {
    let sequential = if key.random_percent == 0 { 3.0 } else { 1.0 };
    [1000.0 * sequential, 10.0 * sequential, 1e5 + key.block_bytes as f64]
}

#[test]
fn adapters_are_equivalent_or_not() {
    assert_eq!(
        verdict("equivalent-adapters", &two_adapters(1.02, 1.3, as_in_the_paper)),
        ClaimVerdict::Holds
    );
    assert_eq!(verdict("equivalent-adapters", &two_adapters(0.7, 1.3, as_in_the_paper)), ClaimVerdict::Fails);
}

#[test]
fn adapters_differ_in_cost_or_in_throughput() {
    assert_eq!(
        verdict("adapters-differ-in-cost", &two_adapters(0.98, 1.3, as_in_the_paper)),
        ClaimVerdict::Holds
    );
    assert_eq!(
        verdict("adapters-differ-in-cost", &two_adapters(0.5, 1.01, as_in_the_paper)),
        ClaimVerdict::Fails
    );
}

#[test]
fn the_cost_of_a_byte_falls_with_the_size_or_stays() {
    assert_eq!(
        verdict("cost-falls-with-size", &two_adapters(1.0, 1.0, as_in_the_paper)),
        ClaimVerdict::Holds
    );
    let by_the_byte = |key: PointKey| [1000.0, 10.0 * key.block_bytes as f64 / 4096.0, 1e5];
    assert_eq!(verdict("cost-falls-with-size", &two_adapters(1.0, 1.0, by_the_byte)), ClaimVerdict::Fails);
}

#[test]
fn sequential_work_is_faster_or_not_and_large_blocks_take_longer_or_not() {
    let flat = |_: PointKey| [1000.0, 10.0, 1e5];
    for id in ["sequential-above-random", "response-rises-with-size"] {
        assert_eq!(verdict(id, &two_adapters(1.0, 1.0, as_in_the_paper)), ClaimVerdict::Holds, "{id}");
        assert_eq!(verdict(id, &two_adapters(1.0, 1.0, flat)), ClaimVerdict::Fails, "{id}");
    }
}

/// What [ESX Adapters 2006] concludes holds by its own tables.
#[test]
fn the_rules_on_adapters_hold_on_the_papers_own_tables() {
    let table = include_str!("../../../../../docs/data/paper2-adapters.csv");
    let mut rows = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(table.as_bytes());
    let row = |row: Result<(String, String, u8, u8, f64, f64), csv::Error>| {
        let (configuration, block, read_percent, random_percent, iops, cpu_percent) = row.unwrap();
        let point = PointKey {
            block_bytes: virtbench_units::parse_bytes(&block).unwrap(),
            read_percent,
            random_percent,
        };
        let figures = virtbench_record::PointMetrics {
            iops,
            bytes_per_second: iops * point.block_bytes as f64,
            latency_ns: Some(16e9 / iops),
            cpu_percent: Some(cpu_percent),
        };
        ResultRow { configuration, point, repetition: 0, figures }
    };
    let rows: Vec<ResultRow> = rows.deserialize().map(row).collect();
    let analysis = analyse(Measurements::from_rows(&rows, 1), Margin::default(), 1);
    let rules = [
        (equivalent_adapters as fn(&Analysis) -> Judged, "by 0.4 % or less"),
        (adapters_differ_in_cost, "3.3 % in I/O per percent CPU, 0.4 % in throughput"),
        (cost_falls_with_size, "with the power"),
        (sequential_above_random, "7.6 times"),
        (response_rises_with_size, "in "),
    ];
    for (rule, figures) in rules {
        let (told, verdict) = rule(&analysis).unwrap();
        assert!(told.contains(figures), "{told}");
        assert_eq!(verdict, ClaimVerdict::Holds, "{told}");
    }
}

#[test]
fn predictions_within_the_papers_errors_hold() {
    let trials = |truth: f64| -> [(Provenance, Records); 1] {
        let trial = |number: u32| Trial {
            format: virtbench_record::FORMAT,
            case: "mail".into(),
            storage: None,
            trial: number,
            capacity_name: "messages".into(),
            reference: 200.0,
            predicted: 100.0,
            truth,
            intervals: Vec::new(),
            in_turn: None,
            bottleneck: String::new(),
            machine_percent: None,
            reference_percent: None,
            reference_host: None,
            machine_host: None,
        };
        [(grid::provenance(grid::small_plan()), Records::Trials((1..=3).map(trial).collect()))]
    };
    assert_eq!(verdict("prediction", &trials(105.0)), ClaimVerdict::Holds);
    assert_eq!(verdict("prediction", &trials(150.0)), ClaimVerdict::Fails);
}

/// Four adapters of the samples: three are alike, the fourth is not.
#[test]
fn one_adapter_that_lags_behind_breaks_equivalence() {
    let adapters = configurations::adapters_plan(REPETITIONS);
    let records = Records::Points(configurations::adapters_records(&adapters));
    let run = [(configurations::adapters_provenance(adapters), records)];
    assert_eq!(verdict("equivalent-adapters", &run), ClaimVerdict::Fails);
}

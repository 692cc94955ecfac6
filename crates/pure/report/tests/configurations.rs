//! Configurations compared: what a reader takes away, the page, and the CSV.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::pages::synthetic;

use std::collections::BTreeMap;

use insta::assert_snapshot;
use proptest::prelude::*;
use synthetic::configurations::{NAMES, adapters_plan, adapters_provenance, adapters_records};
use synthetic::{html, measured_mut, takeaway, unavailable};
use virtbench_model::Margin;
use virtbench_record::{Plan, PointKey, PointMetrics, PointRecord, Provenance, ResultRow, ResultTable};
use virtbench_report::Analysed;
use virtbench_units::Random;

fn sentences(provenance: &Provenance, records: &[PointRecord]) -> String {
    let takeaway = takeaway(provenance, records);
    [vec![takeaway.headline], takeaway.details, takeaway.cautions].concat().join("\n")
}

fn small(repetitions: u32) -> (Provenance, Vec<PointRecord>) {
    let plan = adapters_plan(repetitions);
    let records = adapters_records(&plan);
    (adapters_provenance(plan), records)
}

#[test]
fn each_kind_of_io_has_its_adapter() {
    let (provenance, records) = small(4);
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn under_kvm_nothing_is_said_of_emulated_guests() {
    let (mut provenance, records) = small(4);
    provenance.guest.as_mut().unwrap().accelerator.name = "kvm".into();
    provenance.host.hypervisor = Some("kvm".into());
    let text = sentences(&provenance, &records);
    assert!(text.starts_with("On this host under KVM, use ") && !text.contains("TCG"), "{text}");
    assert!(
        text.contains("The host is itself a virtual machine (kvm)") && !text.contains("native"),
        "{text}"
    );
}

#[test]
fn single_repetitions_are_said_to_carry_no_confidence() {
    let (provenance, records) = small(1);
    let text = sentences(&provenance, &records);
    assert!(text.contains("No spread is given"), "{text}");
}

#[test]
fn configurations_that_are_equal() {
    let (provenance, mut records) = small(4);
    for turn in records.chunks_mut(NAMES.len()) {
        let status = turn[0].status.clone();
        turn.iter_mut().for_each(|record| record.status = status.clone());
    }
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn of_equals_the_cheapest_throughout_is_to_be_used() {
    let (provenance, mut records) = small(4);
    for turn in records.chunks_mut(NAMES.len()) {
        let status = turn[0].status.clone();
        turn.iter_mut().for_each(|record| record.status = status.clone());
        measured_mut(&mut turn[1]).host.cpu_percent /= 2.0;
    }
    let text = sentences(&provenance, &records);
    assert!(text.starts_with("On this host under TCG, use nvme for every kind of I/O measured;"), "{text}");
    assert!(
        text.contains("Of equals in throughput, these cost less CPU: nvme for sequential writes"),
        "{text}"
    );
}

#[test]
fn other_work_on_the_host_is_said() {
    let (mut provenance, records) = small(2);
    assert!(!sentences(&provenance, &records).contains("Other work"));
    provenance.idle[1].host.cpu_percent = 101.0;
    assert!(
        sentences(&provenance, &records).contains("Other work took 100 % of a processor"),
        "less four idle guests"
    );
}

#[test]
fn two_repetitions_that_disagree_leave_it_open() {
    let (provenance, mut records) = small(2);
    for record in records.iter_mut().filter(|record| record.environment == "nvme" && record.repetition == 1) {
        measured_mut(record).outcome.total.bytes_per_second *= 0.6;
    }
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn the_table_advises_what_the_sentence_does() {
    let (provenance, mut records) = small(2);
    for record in records.iter_mut().filter(|record| record.environment == "nvme" && record.repetition == 1) {
        measured_mut(record).outcome.total.bytes_per_second *= 0.6;
    }
    let page = html(&provenance, &records, &BTreeMap::new());
    let table = page.split_once("id=\"kinds\"").unwrap().1.split_once("</table>").unwrap().0;
    assert!(takeaway(&provenance, &records).headline.contains("do not tell which"));
    assert!(!table.contains("<strong>"), "the table advises what the sentence says is not told");
    assert_eq!(table.matches("not told: ").count(), 8, "{table}");
}

#[test]
fn what_could_not_be_measured_is_said_of_its_configuration() {
    let (provenance, mut records) = small(4);
    for record in records.iter_mut().filter(|record| record.environment == "lsi53c895a") {
        *record = unavailable(record.point, "lsi53c895a", record.repetition, "no disk appeared within 30 s");
    }
    measured_mut(&mut records[0]).outcome.errors = 3;
    records.pop();
    assert_snapshot!(sentences(&provenance, &records));
}

#[test]
fn nothing_and_a_single_configuration() {
    let (provenance, mut records) = small(2);
    assert!(sentences(&provenance, &[]).starts_with("Nothing has been measured."));
    records.retain(|record| record.environment == "nvme");
    let text = sentences(&provenance, &records);
    assert!(
        text.starts_with("Only nvme has been measured, so there is nothing to compare it with."),
        "{text}"
    );
}

#[test]
fn the_page_accounts_for_cpu_and_marks_what_was_not_honoured() {
    let (provenance, records) = small(2);
    let page = html(&provenance, &records, &BTreeMap::new());
    for text in [
        "Whose the CPU use was",
        "4 guests running",
        "4 guests stopped",
        "QEMU of the measured guest",
        "✗ queues: 4 asked for, 1 found",
        "lsi53c895a, made up",
        "default-src 'none'",
    ] {
        assert!(page.contains(text), "{text}");
    }
    // virtio-blk over all points: 95 % in all, four fifths of it its QEMU, three idle guests, the rest.
    for number in [">95.0</td>", ">76.0</td>", ">0.750</td>", ">18.2</td>"] {
        assert!(page.contains(number), "{number}");
    }
}

const HOSTILE: &str = "</script><script>alert(1)</script>\"'&";

#[test]
fn whatever_names_contain_is_only_text() {
    let (mut provenance, mut records) = small(2);
    let Plan::Adapters(plan) = &mut provenance.plan else { panic!("{provenance:?}") };
    plan.environments[1] = HOSTILE.into();
    for setup in &mut provenance.setups {
        setup.name = HOSTILE.into();
        setup.settings.insert(HOSTILE.into(), HOSTILE.into());
        setup.backing.name = HOSTILE.into();
        setup.command_line.push(HOSTILE.into());
        setup.found.as_mut().unwrap().model = Some(HOSTILE.into());
    }
    for record in records.iter_mut().filter(|record| record.environment == "nvme") {
        record.environment = HOSTILE.into();
    }
    let page = html(&provenance, &records, &BTreeMap::new());
    assert!(!page.contains("<script>alert") && page.contains("&lt;script&gt;alert(1)"));
    let table = ResultTable {
        facts: virtbench_record::TableFacts(vec![
            ("title".into(), HOSTILE.into()),
            (HOSTILE.into(), HOSTILE.into()),
        ]),
        ..ResultTable::default()
    };
    assert!(!Analysed::table(&table, Margin::default()).html().contains("<script>alert"));
}

#[test]
fn a_runs_records_and_the_same_figures_as_a_table_come_to_the_same_verdicts() {
    let (provenance, records) = small(4);
    let rows = records.iter().map(|record| ResultRow {
        configuration: record.environment.clone(),
        point: record.point,
        repetition: record.repetition,
        figures: PointMetrics::from(record.measured().unwrap()),
    });
    let table = ResultTable { rows: rows.collect(), ..ResultTable::default() };
    let of_run = Analysed::run(&provenance, &records, Margin::default()).analysis;
    let of_table = Analysed::table(&table, Margin::default()).analysis;
    assert_eq!(of_run.measurements.configurations, of_table.measurements.configurations);
    assert_eq!(of_run.pairs, of_table.pairs);
}

#[test]
fn verdicts_are_rows_of_csv() {
    let (provenance, records) = small(2);
    let analysed = Analysed::run(&provenance, &records, Margin::default());
    let csv = analysed.verdicts_csv().unwrap();
    // Six pairs, twelve points, three quantities.
    assert_eq!(csv.lines().count(), 1 + 6 * 12 * 3);
    assert!(csv.starts_with(
        "first,second,block_bytes,read_percent,random_percent,quantity,ratio,low,high,pairs,verdict\n"
    ));
}

fn any_records() -> impl Strategy<Value = Vec<PointRecord>> {
    let key = (prop::sample::select(vec![512u64, 4096, 65536]), 0u8..=2, 0u8..=2);
    let one = (key, 0u32..3, 0usize..5, 0u8..6, any::<u64>());
    prop::collection::vec(one, 0..40).prop_map(|drawn| {
        let one = |((block_bytes, read, random), repetition, name, fate, seed): (
            (u64, u8, u8),
            u32,
            usize,
            u8,
            u64,
        )| {
            let point = PointKey { block_bytes, read_percent: read * 50, random_percent: random * 50 };
            let name = NAMES.get(name).copied().unwrap_or("unplanned");
            let mut record = synthetic::record(point, name, repetition, &mut Random::new(seed));
            match fate {
                0 => record = unavailable(point, name, repetition, "drawn"),
                1 => {
                    let measured = measured_mut(&mut record);
                    measured.outcome.total = Default::default();
                    measured.host.cpu_percent = 0.0;
                }
                2 => measured_mut(&mut record).outcome.total.bytes_per_second = f64::NAN,
                _ => {}
            }
            record
        };
        drawn.into_iter().map(one).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_records_panic_it(records in any_records()) {
        let provenance = adapters_provenance(adapters_plan(3));
        let page = html(&provenance, &records, &BTreeMap::new());
        prop_assert!(page.ends_with("</html>"));
        let takeaway = takeaway(&provenance, &records);
        for sentence in [vec![takeaway.headline], takeaway.details, takeaway.cautions].concat() {
            prop_assert!(sentence.ends_with('.') && !sentence.contains("NaN") && !sentence.contains("inf"), "{sentence}");
        }
    }
}

use std::collections::BTreeMap;

use virtbench_record::{OltpRecord, OltpStep, Provenance, Records};
use virtbench_samples::grid::described;
use virtbench_samples::{oltp, operations};

use super::*;
use crate::papers::tests::{executed_by, judged, verdict};

/// Three repetitions at saturation: 100 transactions a second natively, so many in the VM.
fn database(vm: u64, counted: Option<[[f64; 3]; 2]>) -> [(Provenance, Records); 1] {
    let of_side = |side: &str, rate: u64, counts: Option<[f64; 3]>| -> Vec<OltpRecord> {
        let record = |repetition: u32| {
            let mut measured = oltp::measured(4, [rate + u64::from(repetition); 10], 1.0);
            if let Some([cycles, each, instructions]) = counts {
                measured.known.insert(Quantity::CyclesPerTransaction, cycles);
                measured.known.insert(Quantity::CyclesPerInstruction, each);
                measured.known.insert(Quantity::InstructionsPerTransaction, instructions);
            }
            oltp::record(side, OltpStep::Saturation, 4, repetition, measured)
        };
        (0..3).map(record).collect()
    };
    let counts = |side: usize| counted.map(|counted| counted[side]);
    let records = [of_side("native", 100, counts(0)), of_side("vm", vm, counts(1))].concat();
    [(executed_by("uml", described(Plan::Oltp(oltp::plan()))), Records::Oltp(records))]
}

#[test]
fn a_database_keeps_four_fifths_or_not() {
    assert_eq!(
        judged("database-keeps-four-fifths", &database(90, None)),
        [("UML".into(), ClaimVerdict::Holds)]
    );
    assert_eq!(verdict("database-keeps-four-fifths", &database(40, None)), ClaimVerdict::Fails);
}

#[test]
fn where_the_users_own_program_was_the_limit_nothing_is_decided() {
    let [(provenance, mut records)] = database(90, None);
    if let Records::Oltp(records) = &mut records {
        let virtbench_record::Status::Measured(measured) = &mut records[0].status else {
            panic!("{records:?}")
        };
        measured.outcome.driver_is_limit = true;
    }
    assert_eq!(verdict("database-keeps-four-fifths", &[(provenance, records)]), ClaimVerdict::Open);
}

#[test]
fn counters_say_whether_instructions_are_slower_or_more_and_without_them_it_is_open() {
    let native = [3e6, 2.0, 1.5e6];
    let slower = Some([native, [3.6e6, 2.25, 1.6e6]]);
    let more = Some([native, [4.8e6, 2.0, 2.4e6]]);
    for (id, holds, fails) in [("slower-instructions", slower, more), ("same-path", slower, more)] {
        assert_eq!(verdict(id, &database(80, holds)), ClaimVerdict::Holds, "{id}");
        assert_eq!(verdict(id, &database(80, fails)), ClaimVerdict::Fails, "{id}");
        assert_eq!(verdict(id, &database(80, None)), ClaimVerdict::Open, "{id}");
    }
}

/// [Platform 2014]'s own tables, 4 and 5.
#[test]
fn the_rules_on_databases_hold_on_the_papers_own_tables() {
    let table = |text: &str, quantities: &[Quantity]| {
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_reader(text.as_bytes());
        let row = |row: Result<csv::StringRecord, csv::Error>| {
            let row = row.unwrap();
            let known =
                quantities.iter().zip(row.iter().skip(1)).map(|(one, value)| (*one, value.parse().unwrap()));
            virtbench_record::ApplicationRow {
                configuration: row[0].to_owned(),
                repetition: 0,
                known: known.collect::<BTreeMap<Quantity, f64>>(),
            }
        };
        let rows: Vec<_> = reader.records().map(row).collect();
        crate::application::analyse_application(&rows, 1)
    };
    let oltp = table(
        include_str!("../../../../../docs/data/paper3-oltp.csv"),
        &[Quantity::Users, Quantity::TransactionsPerSecond],
    );
    let (told, verdict) = database_keeps(&oltp).unwrap();
    assert_eq!(verdict, ClaimVerdict::Holds, "{told}");
    assert!(told.starts_with("0.79 of native"), "{told}");
    let cycles = table(
        include_str!("../../../../../docs/data/paper3-cycles.csv"),
        &[
            Quantity::UtilisationPercent,
            Quantity::CyclesPerTransaction,
            Quantity::CyclesPerInstruction,
            Quantity::InstructionsPerTransaction,
        ],
    );
    assert_eq!(
        slower_instructions(&cycles).unwrap(),
        ("1.13 times the cycles an instruction, 1.08 times the instructions".into(), ClaimVerdict::Holds)
    );
    assert_eq!(same_path(&cycles).unwrap().1, ClaimVerdict::Holds);
}

fn operating(
    plan: virtbench_record::OperationsPlan,
    records: Vec<virtbench_record::OperationsRecord>,
) -> [(Provenance, Records); 1] {
    [(described(Plan::Operations(plan)), Records::Operations(records))]
}

#[test]
fn operations_that_take_longer_with_more_vms_are_told_from_those_that_do_not() {
    // Starting takes three times as long with twice the VMs, ending a VM as long as before.
    let plan = operations::plan();
    assert_eq!(super::super::claim::manager(&plan), "libvirt", "where it is is no part of a column's name");
    assert_eq!(
        verdict("operations-slow-with-density", &operating(plan.clone(), operations::records())),
        ClaimVerdict::Fails
    );
    let slowed: Vec<_> = [(10, 100), (20, 300)]
        .iter()
        .flat_map(|(vms, ms)| {
            (0..2).map(move |piece| {
                let all = [(OperationKind::PowerOn, *ms), (OperationKind::PowerOff, ms / 2)];
                let numbers = all.map(|(kind, ms)| (kind, operations::numbers(50, ms * 1_000_000, 0)));
                operations::record(*vms, piece, Some(100.0), BTreeMap::from(numbers))
            })
        })
        .collect();
    assert_eq!(verdict("operations-slow-with-density", &operating(plan, slowed)), ClaimVerdict::Holds);
}

#[test]
fn starting_is_the_slowest_operation_or_another_one_is() {
    let plan = operations::plan();
    assert_eq!(
        verdict("starting-is-slowest", &operating(plan.clone(), operations::records())),
        ClaimVerdict::Holds
    );
    let copied = BTreeMap::from([
        (OperationKind::PowerOn, operations::numbers(50, 100_000_000, 0)),
        (OperationKind::Clone, operations::numbers(50, 900_000_000, 0)),
    ]);
    let records = vec![operations::record(10, 0, Some(100.0), copied)];
    assert_eq!(verdict("starting-is-slowest", &operating(plan.clone(), records)), ClaimVerdict::Fails);
    let alone = BTreeMap::from([(OperationKind::PowerOff, operations::numbers(50, 1_000_000, 0))]);
    let records = vec![operations::record(10, 0, Some(100.0), alone)];
    assert_eq!(verdict("starting-is-slowest", &operating(plan, records)), ClaimVerdict::Open);
}

//! The page, the sentences and the table of a study of a database.

#![allow(clippy::unwrap_used)]

use virtbench_samples::oltp as database;

use crate::pages::synthetic;

use std::collections::BTreeMap;

use virtbench_record::{OltpFailureDetail, OltpRecord, OltpStep, Plan, Provenance, Records, Status};
use virtbench_report::{documents, takeaway};

fn facts() -> Provenance {
    synthetic::described(Plan::Oltp(database::plan()))
}

/// Natively 500 to 600 transactions a second with four users, in the VM a tenth of that.
fn records() -> Vec<OltpRecord> {
    let mut records = Vec::new();
    for (side, scale) in [("native", 10), ("vm", 1)] {
        for (users, rate, idle) in [(1, 20, 60.0), (2, 38, 25.0), (4, 50, 1.0), (8, 51, 0.5)] {
            let measured = database::measured(users, [rate * scale; 10], idle);
            records.push(database::record(side, OltpStep::Search, users, 0, measured));
        }
        for repetition in 0..3 {
            let rate = (50 + 5 * u64::from(repetition)) * scale;
            let measured = database::measured(4, [rate; 10], 1.0);
            records.push(database::record(side, OltpStep::Saturation, 4, repetition, measured));
        }
    }
    records
}

#[test]
fn a_database_is_compared_in_sentences() {
    let takeaway = takeaway(&facts(), &Records::Oltp(records()));
    insta::assert_snapshot!([vec![takeaway.headline], takeaway.details, takeaway.cautions].concat().join(
        "
"
    ));
}

#[test]
fn a_side_that_completes_nothing_is_named_and_not_left_out() {
    let stalled_in = |runs: usize| {
        let mut records = records();
        let of_vm =
            records.iter_mut().filter(|one| one.key.side == "vm" && one.key.step == OltpStep::Saturation);
        for record in of_vm.take(runs) {
            let repetition = record.key.repetition;
            let nothing = database::measured(4, [0; 10], 1.0);
            *record = database::record("vm", OltpStep::Saturation, 4, repetition, nothing);
        }
        takeaway(&facts(), &Records::Oltp(records))
    };
    assert_eq!(stalled_in(3).headline, "vm completed no transaction in 3 repetitions.");
    let once = stalled_in(1);
    assert!(once.headline.starts_with("vm does 0.1"), "{once:?}");
    let said = "vm completed no transaction in 1 of 3 repetitions: ratios leave these out";
    assert!(once.cautions.iter().any(|caution| caution.starts_with(said)), "{once:?}");
}

#[test]
fn the_page_of_a_database_names_sides_paths_and_what_is_not_known() {
    let mut records = records();
    let html = documents(&facts(), &Records::Oltp(records.clone()), &BTreeMap::new()).unwrap().html;
    for text in
        ["native", "vm / native", "Users against throughput", "no hardware counters", "0.300 ms median"]
    {
        assert!(html.contains(text), "{text}");
    }
    // Neither an empty run nor one that failed keeps the page from saying so.
    let empty = documents(&facts(), &Records::Oltp(Vec::new()), &BTreeMap::new()).unwrap();
    assert!(empty.html.contains("No two sides have been measured at their saturation yet."));
    records[7].status =
        Status::Failed { why: "the <guest> died".into(), detail: OltpFailureDetail::default() };
    let html = documents(&facts(), &Records::Oltp(records), &BTreeMap::new()).unwrap().html;
    assert!(html.contains("the &lt;guest&gt; died") && !html.contains("<guest>"));
}

#[test]
fn the_table_of_a_database_has_a_row_for_each_measurement() {
    let csv = documents(&facts(), &Records::Oltp(records()), &BTreeMap::new()).unwrap().csv;
    assert_eq!(csv.lines().count(), 1 + records().len());
    let fields = csv.lines().map(|line| line.split(',').count()).collect::<Vec<_>>();
    assert!(fields.iter().all(|count| *count == fields[0]), "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("native,search,1,0,0,200,0,"), "{csv}");
}

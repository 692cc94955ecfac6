//! The CSV table of a small run.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::pages::synthetic;

use insta::assert_snapshot;
use synthetic::{plan, records, unavailable};

#[test]
fn one_row_for_each_measured_repetition() {
    let plan = plan(&[4096], &[50], &[0], 2);
    let mut records = records(&plan);
    records.push(unavailable(records[0].point, "vm", 2, "the guest stopped"));
    records[0].environment = "a, \"native\" one".into();
    assert_snapshot!(virtbench_report::csv(&records).unwrap());
}

#[test]
fn an_empty_run_is_a_header() {
    assert_eq!(virtbench_report::csv(&[]).unwrap().lines().count(), 1);
}

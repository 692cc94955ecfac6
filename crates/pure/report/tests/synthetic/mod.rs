//! Invented runs, and the pages and sentences that they give.

#![allow(dead_code, unused_imports, reason = "each example and test uses its own part")]
#![allow(missing_docs, reason = "a fixture of tests")]

pub use virtbench_samples::grid::*;
pub use virtbench_samples::{configurations, sets};

use std::collections::BTreeMap;

use virtbench_record::*;
use virtbench_report::Takeaway;

/// The page of points.
pub fn html(facts: &Provenance, records: &[PointRecord], histograms: &BTreeMap<String, String>) -> String {
    virtbench_report::html(facts, &Records::Points(records.to_vec()), histograms)
}

/// What a reader takes away from points.
pub fn takeaway(facts: &Provenance, records: &[PointRecord]) -> Takeaway {
    virtbench_report::takeaway(facts, &Records::Points(records.to_vec()))
}

/// The page of sets of machines.
pub fn sets_html(facts: &Provenance, records: &[SetRecord]) -> String {
    virtbench_report::html(facts, &Records::Sets(records.to_vec()), &BTreeMap::new())
}

/// What a reader takes away from sets of machines.
pub fn sets_takeaway(facts: &Provenance, records: &[SetRecord]) -> Takeaway {
    virtbench_report::takeaway(facts, &Records::Sets(records.to_vec()))
}

/// The page of trials.
pub fn predictions_html(facts: &Provenance, trials: &[Trial]) -> String {
    virtbench_report::html(facts, &Records::Trials(trials.to_vec()), &BTreeMap::new())
}

/// What a reader takes away from trials.
pub fn predictions_takeaway(facts: &Provenance, trials: &[Trial]) -> Takeaway {
    virtbench_report::takeaway(facts, &Records::Trials(trials.to_vec()))
}

//! The page, the sentences and the table of a study of an application.

#![allow(clippy::unwrap_used)]

use virtbench_samples::application;

use crate::pages::synthetic;

use std::collections::BTreeMap;

use virtbench_record::{ApplicationFailureDetail, Plan, Provenance, Records, Status};
use virtbench_report::{documents, takeaway};

fn facts() -> Provenance {
    synthetic::described(Plan::Application(application::plan()))
}

#[test]
fn an_application_is_compared_in_sentences() {
    let takeaway = takeaway(&facts(), &Records::Application(application::records()));
    insta::assert_snapshot!(
        [vec![takeaway.headline], takeaway.details, takeaway.cautions].concat().join("\n")
    );
}

#[test]
fn the_page_of_an_application_names_metrics_paths_and_what_failed() {
    let mut records = application::records();
    let page = |records| documents(&facts(), &Records::Application(records), &BTreeMap::new()).unwrap().html;
    let html = page(records.clone());
    for text in ["SET, 1/s", "latency, ms", "0.300 ms median", "2 of the same", "redis-benchmark", "beside 2"]
    {
        assert!(html.contains(text), "{text}");
    }
    assert!(page(Vec::new()).contains("No two sides have been measured yet."));
    records[0].status = Status::Failed {
        why: "nothing matches".into(),
        detail: ApplicationFailureDetail { output: Some("<b>no</b> luck".into()) },
    };
    let html = page(records);
    assert!(html.contains("nothing matches") && html.contains("&lt;b&gt;no&lt;/b&gt; luck"));
}

#[test]
fn the_table_of_an_application_has_a_column_for_each_metric() {
    let mut records = application::records();
    records[1].status =
        Status::Failed { why: "no, \"luck\"".into(), detail: ApplicationFailureDetail::default() };
    let csv = documents(&facts(), &Records::Application(records), &BTreeMap::new()).unwrap().csv;
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].ends_with("host_cpu_percent,SET [1/s],latency [ms]"), "{csv}");
    assert!(lines[1].starts_with("native,0,0,0,,5000000000,100,1000,1"), "{csv}");
    assert!(lines[2].starts_with("native,2,0,0,\"no, \"\"luck\"\"\",,,,"), "{csv}");
    assert_eq!(lines.len(), 13);
}

//! The page, the sentences and the table of a study of management operations.

#![allow(clippy::unwrap_used)]

use crate::pages::synthetic;
use virtbench_samples::operations;

use std::collections::BTreeMap;

use virtbench_record::{Plan, Provenance, Records, Status};
use virtbench_report::{documents, takeaway};

fn facts() -> Provenance {
    synthetic::described(Plan::Operations(operations::plan()))
}

#[test]
fn operations_are_told_in_sentences() {
    let takeaway = takeaway(&facts(), &Records::Operations(operations::records()));
    let all = std::iter::once(takeaway.headline).chain(takeaway.details).chain(takeaway.cautions);
    insta::assert_snapshot!(all.collect::<Vec<_>>().join("\n"));
}

#[test]
fn fewer_arrivals_by_chance_are_no_doubt_about_the_platform_and_late_ends_are() {
    let told = |elapsed_ns: u64| {
        let mut records = operations::records();
        for record in records.iter_mut().filter(|record| record.key.per_minute == Some(100.0)) {
            // 101 of them arrive in a minute.
            record.key.per_minute = Some(120.0);
            let Status::Measured(measured) = &mut record.status else { panic!("a piece failed") };
            measured.elapsed_ns = elapsed_ns;
        }
        takeaway(&facts(), &Records::Operations(records))
    };
    let in_time = told(60_000_000_000);
    let cautions = in_time.cautions.join("\n");
    assert!(!cautions.contains("did not keep up"), "{cautions}");
    let details = in_time.details.join("\n");
    assert!(
        details.contains("100 of 120 operations a minute were done (102 arrived by chance)"),
        "{details}"
    );
    let late = told(90_000_000_000).cautions.join("\n");
    assert!(late.contains("With 10 VMs the platform did not keep up with 120 a minute"), "{late}");
}

#[test]
fn a_run_has_its_figures_as_metrics_for_prometheus() {
    let written = documents(&facts(), &Records::Operations(operations::records()), &BTreeMap::new()).unwrap();
    let (name, text) = written.more.unwrap();
    assert_eq!(name, "operations.prom");
    let step = r#"platform="libvirt+qemu:///system?pool=default",vms="20",asked="500",operation="power_on""#;
    for labels in [
        format!("virtbench_management_operations_total{{{step},outcome=\"busy\"}} "),
        format!("virtbench_management_median_seconds{{{step}}} "),
        format!("virtbench_management_most_seconds{{{step}}} "),
        format!("virtbench_management_phase_seconds{{{step},phase=\"running\"}} "),
    ] {
        assert!(text.contains(&labels), "{labels}: {text}");
    }
    assert!(text.contains("# TYPE virtbench_management_operations counter\n") && text.ends_with("# EOF\n"));
}

#[test]
fn the_page_of_operations_has_phases_latencies_and_failures() {
    let html =
        documents(&facts(), &Records::Operations(operations::records()), &BTreeMap::new()).unwrap().html;
    for words in [
        "Where the time of each operation goes",
        "Over the rate",
        "Over the number of VMs",
        "Growth with the number of VMs",
        "20 VMs, 500 a minute",
        "busy",
        "power_on: busy",
        "Platform",
    ] {
        assert!(html.contains(words), "{words}");
    }
    let empty = documents(&facts(), &Records::Operations(Vec::new()), &BTreeMap::new()).unwrap();
    assert!(empty.html.contains("Nothing was measured yet.") && empty.html.contains("No operation failed."));
}

#[test]
fn pieces_of_operations_are_rows() {
    let csv = documents(&facts(), &Records::Operations(operations::records()), &BTreeMap::new()).unwrap().csv;
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let rows: Vec<BTreeMap<String, String>> = reader.deserialize().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), 24, "two operations and all together in each of eight pieces");
    assert_eq!((rows[0]["operation"].as_str(), rows[0]["done"].as_str()), ("power_on", "50"));
    assert_eq!((rows[2]["operation"].as_str(), rows[2]["done"].as_str()), ("all", "100"));
    assert!(rows[2]["done_per_minute"].parse::<f64>().unwrap() > 99.0 && !rows[0]["p95_ns"].is_empty());
    assert!(rows[0]["seen_mean_ns"].parse::<f64>().unwrap() > 4.9e7 && rows[0]["queued_mean_ns"].is_empty());
}

#[test]
fn ways_to_clone_and_the_platform_s_jobs_are_told() {
    let all = |(plan, records): (virtbench_record::OperationsPlan, Vec<_>)| {
        let facts = synthetic::described(Plan::Operations(plan));
        let records = Records::Operations(records);
        let documents = documents(&facts, &records, &BTreeMap::new()).unwrap();
        (takeaway(&facts, &records).details.join("\n"), documents.html, documents.csv)
    };
    let (said, html, csv) = all(operations::of_clones());
    assert!(said.contains("a clone of the kind linked takes 0.40"), "{said}");
    assert!(html.contains("Clones by the way their disks are made"));
    assert_eq!(csv.lines().filter(|line| line.contains("clone (reflink)")).count(), 4, "{csv}");
    assert!(!html.contains("What the platform says of its jobs"), "clones are no jobs");
    let (said, html, _) = all(operations::of_jobs());
    assert!(
        said.contains(
            "takes 1,000 ms by the platform's own statistics, of which its guest stands still for 100 ms"
        ),
        "{said}"
    );
    assert!(
        html.contains("What the platform says of its jobs") && html.contains("unavailable: nothing is told")
    );
}

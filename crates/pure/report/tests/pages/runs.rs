//! Runs compared with each other.

use std::collections::BTreeMap;

use virtbench_model::Margin;
use virtbench_model::before_after::{RunSet, before_after as compare};
use virtbench_model::history::{HistoryRun, Measure, history as over_time};
use virtbench_record::Better;
use virtbench_report::{BeforeAfterPage, HistoryPage};

use super::synthetic::{measured_mut, provenance, records, small_plan};

/// The VM became slower at random reads.
pub fn before_after() -> String {
    let plan = small_plan();
    let facts = provenance(plan.clone());
    let before = records(&plan);
    let mut again = plan;
    again.seed = 7;
    let mut after = records(&again);
    for record in
        after.iter_mut().filter(|record| record.environment == "vm" && record.point.random_percent > 50)
    {
        let outcome = &mut measured_mut(record).outcome;
        outcome.total.bytes_per_second *= 0.8;
        outcome.total.iops *= 0.8;
    }
    let compared =
        compare([&RunSet::one(&facts, &before), &RunSet::one(&facts, &after)], Margin::default(), None);
    BeforeAfterPage { compared: &compared, runs: ["runs/monday", "runs/tuesday"] }.html("0")
}

/// Thirty nights: a change for the worse, which was mended later, in one measure, and none in the other.
pub fn history() -> String {
    let measure = |subject: &str, value: f64| Measure {
        subject: subject.into(),
        quantity: "throughput".into(),
        unit: "B/s".into(),
        better: Better::Higher,
        headline: true,
        value,
    };
    let run = |night: u32| {
        let noise = 1.0 + 0.004 * f64::from(night * 7 % 5);
        let level = if (12..22).contains(&night) { 80e6 } else { 100e6 };
        HistoryRun {
            folder: format!("/srv/nightly/run-{night}"),
            started_unix_s: 1_795_000_000 + 86_400 * u64::from(night),
            study: "native-vs-vm".into(),
            parts: BTreeMap::new(),
            load: None,
            identity: format!("run {night}"),
            host: "a host".into(),
            versions: BTreeMap::from([("virtbench".into(), format!("0.{}", night / 12))]),
            tags: vec![format!("night {night}")],
            measures: vec![
                measure("vm, all points", level * noise),
                measure("native, all points", 160e6 * noise),
            ],
        }
    };
    HistoryPage { history: &over_time((0..30).map(run).collect(), Margin::default(), &[], 1) }.html("0")
}

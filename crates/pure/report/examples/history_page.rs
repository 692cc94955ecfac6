//! A page of many runs with many measures, to see what it costs:
//!
//! ```sh
//! cargo build --release -p virtbench-report --example history_page
//! time target/release/examples/history_page 500 80 > history.html
//! ```

#![allow(clippy::unwrap_used, missing_docs, reason = "a program")]

use std::collections::BTreeMap;

use virtbench_model::Margin;
use virtbench_model::history::{HistoryRun, Measure, history};
use virtbench_record::Better;
use virtbench_report::HistoryPage;
use virtbench_units::Random;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<usize>().unwrap());
    let (runs, measures) = (numbers.next().unwrap_or(500), numbers.next().unwrap_or(80));
    let mut random = Random::new(1);
    let runs = (0..runs).map(|at| run(at, runs, measures, &mut random)).collect();
    let history = history(runs, Margin::default(), &[], 1);
    print!("{}", HistoryPage { history: &history }.html("0"));
}

/// One of the nights, of which the last third is slower in one measure.
fn run(at: usize, of: usize, measures: usize, random: &mut Random) -> HistoryRun {
    let measure = |index: usize, random: &mut Random| Measure {
        subject: format!("environment, point {index}"),
        quantity: "throughput".into(),
        unit: "B/s".into(),
        better: Better::Higher,
        headline: index < 4,
        value: 1e8
            * if index == 0 && 3 * at > 2 * of { 0.8 } else { 1.0 }
            * (1.0 + 0.1 * (random.unit() - 0.5)),
    };
    HistoryRun {
        folder: format!("/srv/nightly/{at}"),
        started_unix_s: 1_700_000_000 + 86_400 * at as u64,
        study: "compare".into(),
        parts: BTreeMap::new(),
        load: None,
        identity: format!("{at}"),
        host: "a host".into(),
        versions: BTreeMap::from([("virtbench".into(), format!("0.{}", at / 50))]),
        tags: Vec::new(),
        measures: (0..measures).map(|index| measure(index, random)).collect(),
    }
}

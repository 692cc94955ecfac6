//! A page of every kind, from invented figures: what a browser and the example show.

#![allow(dead_code, reason = "each program uses its own part")]
#![allow(clippy::unwrap_used, missing_docs, reason = "a fixture of tests")]
#![allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small positive made-up numbers")]

#[path = "../synthetic/mod.rs"]
pub mod synthetic;

mod desktops;
mod fence;
mod platform;
mod runs;
mod studies;
pub mod tiles;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use virtbench_record::{ComparePlan, Plan, Provenance, Records, SetRecord};

use synthetic::configurations::{adapters_plan, adapters_provenance, adapters_records};
use synthetic::sets::{deviation, matrix, neighbours};
use synthetic::{html, plan, provenance, records, sets_html, small_plan, unavailable};

/// A page and how many charts it has.
pub struct Page {
    pub name: &'static str,
    pub html: String,
    pub charts: usize,
}

fn page(name: &'static str, charts: usize, html: String) -> Page {
    Page { name, html, charts }
}

fn of((facts, records): &(Provenance, Records)) -> String {
    virtbench_report::html(facts, records, &BTreeMap::new())
}

/// A run of every kind that a folder can hold.
pub fn every_kind() -> Vec<(&'static str, Provenance, Records)> {
    let (small, adapters) = (small_plan(), adapters_plan(3));
    let named = |name, (facts, records): (Provenance, Records)| (name, facts, records);
    let sets = |(facts, records): (Provenance, Vec<SetRecord>)| (facts, Records::Sets(records));
    let mut compare = (adapters_provenance(adapters.clone()), Records::Points(adapters_records(&adapters)));
    compare.0.plan =
        Plan::Compare(ComparePlan { grid: adapters.clone(), uris: adapters.environments.clone() });
    vec![
        named("native-vs-vm", (provenance(small.clone()), Records::Points(records(&small)))),
        named(
            "adapters",
            (adapters_provenance(adapters.clone()), Records::Points(adapters_records(&adapters))),
        ),
        named("compare", compare),
        named("neighbours", sets(neighbours())),
        named("deviation", sets(deviation())),
        named("matrix", sets(matrix())),
        named("database", studies::database()),
        named("application", studies::application()),
        named("operations", studies::operations()),
        named("predictions", studies::predictions()),
        named("desktops", desktops::study()),
        named("tiles", tiles::study()),
        named("network", studies::network()),
        named("platform", platform::study()),
    ]
}

/// Every kind of page with everything on it.
pub fn full() -> &'static [Page] {
    static PAGES: LazyLock<Vec<Page>> = LazyLock::new(whole);
    &PAGES
}

fn whole() -> Vec<Page> {
    let (small, line) = (small_plan(), plan(&[4096], &[100], &[0, 50, 100], 2));
    let adapters = adapters_plan(3);
    let mut kinds = adapters_plan(1);
    kinds.read_percents = vec![0, 50, 100];
    let none = BTreeMap::new();
    vec![
        // Two block sizes with three maps each, the ratios, a latency chart for each of 18 points, three of CPU cost.
        page("native-vs-vm", 2 * 3 + 1 + 18 + 3, html(&provenance(small.clone()), &records(&small), &none)),
        page("line", 1 + 1 + 3 + 3, html(&provenance(line.clone()), &records(&line), &none)),
        // Throughput, response time, I/O per %CPU and KB/s per %CPU of four kinds of I/O, or of six.
        page(
            "adapters",
            4 * 4,
            html(&adapters_provenance(adapters.clone()), &adapters_records(&adapters), &none),
        ),
        page("kinds", 4 * 6, html(&adapters_provenance(kinds.clone()), &adapters_records(&kinds), &none)),
        // Two metrics of shares and sums, and fairness over time.
        page("neighbours", 2 + 2 + 1, sets_html(&neighbours().0, &neighbours().1)),
        page("deviation", 1, sets_html(&deviation().0, &deviation().1)),
        // Only throughput, for memory has no response time.
        page("matrix", 1, sets_html(&matrix().0, &matrix().1)),
        page("database", 2 + 1 + 2, of(&studies::database())),
        page("application", 2, of(&studies::application())),
        // Phases of four steps, over time, over rates with two numbers of VMs, over numbers of VMs.
        page("operations", 4 + 1 + 2 + 1, of(&studies::operations())),
        page("desktops", 2, of(&desktops::study())),
        // Score and members, two drawings with three numbers of tiles each, and the host with three.
        page("tiles", 2 + 2 * 3 + 3, of(&tiles::study())),
        page("tiles-table", 2, tiles::table()),
        page("before-after", 2 * 2, runs::before_after()),
        page("history", 2, runs::history()),
        page("prediction", 1, studies::prediction()),
        page("predictions", 2, of(&studies::predictions())),
        // Two figures with two metrics each.
        page("fence", 2 + 1, fence::page()),
        // The domains beside each other, and the figures of four; paper shows neither.
        page("platform", 1 + 4, of(&platform::study())),
        page("platforms-compared", 1, platform::compared()),
    ]
}

/// Pages of runs that measured little, or nothing.
pub fn sparse() -> Vec<Page> {
    let plan = small_plan();
    let all = records(&plan);
    let facts = || provenance(plan.clone());
    let none = BTreeMap::new();
    let (hole, other) = (all[30].point, all[80].point);
    let holed = all
        .iter()
        .filter(|record| record.point != hole && (record.point != other || record.environment != "vm"));
    let holed: Vec<_> = holed.cloned().collect();
    let without_vm = all.iter().map(|record| match record.environment.as_str() {
        "vm" => unavailable(record.point, "vm", record.repetition, "QEMU is not installed"),
        _ => record.clone(),
    });
    let without_vm: Vec<_> = without_vm.collect();
    vec![
        page("holes", 2 * 3 + 1 + 17 + 3, html(&facts(), &holed, &none)),
        // One map for each block size, no ratios.
        page("no-vm", 2 + 18 + 3, html(&facts(), &without_vm, &none)),
        page("empty", 0, html(&facts(), &[], &none)),
        page("empty-adapters", 0, html(&adapters_provenance(adapters_plan(2)), &[], &none)),
        page("empty-neighbours", 0, sets_html(&neighbours().0, &[])),
        page("empty-deviation", 0, sets_html(&deviation().0, &[])),
        page("empty-matrix", 0, sets_html(&matrix().0, &[])),
    ]
}

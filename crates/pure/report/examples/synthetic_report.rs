//! Writes a report of made-up measurements, to look at the page without measuring anything:
//! `cargo run -p virtbench-report --example synthetic_report -- report.html [small|paper|line|adapters]`.

#![allow(clippy::disallowed_methods, reason = "an example program writes a file")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss, missing_docs)]

#[path = "../tests/synthetic/mod.rs"]
mod synthetic;

use std::collections::BTreeMap;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "report.html".into());
    let shape = arguments.next();
    if shape.as_deref() == Some("adapters") {
        return adapters(&path);
    }
    let plan = match shape.as_deref() {
        None | Some("small") => synthetic::small_plan(),
        Some("paper") => {
            synthetic::plan(&[1024, 4096, 8192, 16384], &[0, 25, 50, 75, 100], &[0, 25, 50, 75, 100], 3)
        }
        Some("line") => synthetic::plan(&[4096, 65536], &[100], &[0, 50, 100], 3),
        Some(other) => panic!("{other:?} is none of small, paper, line and adapters"),
    };
    let records = synthetic::records(&plan);
    let provenance = synthetic::provenance(plan);
    let html = synthetic::html(&provenance, &records, &BTreeMap::new());
    std::fs::write(&path, html).unwrap();
    println!("{path}");
}

fn adapters(path: &str) {
    use synthetic::configurations::{adapters_plan, adapters_provenance, adapters_records};
    let plan = adapters_plan(4);
    let records = adapters_records(&plan);
    let html = synthetic::html(&adapters_provenance(plan), &records, &BTreeMap::new());
    std::fs::write(path, html).unwrap();
    println!("{path}");
}

//! Writes a report of made-up measurements, to look at the page without measuring anything:
//! `cargo run -p virtbench-report --example synthetic_report -- report.html [small|paper|line|adapters]`,
//! or a page of every kind into a folder: `... -- pages/ all`.

#![allow(clippy::disallowed_methods, reason = "an example program writes files")]
#![allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss, missing_docs)]

#[path = "../tests/pages/mod.rs"]
mod pages;

use std::collections::BTreeMap;
use std::path::Path;

use pages::synthetic;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().unwrap_or_else(|| "report.html".into());
    let shape = arguments.next();
    match shape.as_deref() {
        None | Some("small") => points(&path, synthetic::small_plan()),
        Some("paper") => {
            let fifths = [0, 25, 50, 75, 100];
            points(&path, synthetic::plan(&[1024, 4096, 8192, 16384], &fifths, &fifths, 3));
        }
        Some("line") => points(&path, synthetic::plan(&[4096, 65536], &[100], &[0, 50, 100], 3)),
        Some("adapters") => adapters(&path),
        Some("all") => all(Path::new(&path)),
        Some(other) => panic!("{other:?} is none of small, paper, line, adapters and all"),
    }
}

fn points(path: &str, plan: virtbench_record::GridPlan) {
    let records = synthetic::records(&plan);
    write(Path::new(path), &synthetic::html(&synthetic::provenance(plan), &records, &BTreeMap::new()));
}

fn adapters(path: &str) {
    use synthetic::configurations::{adapters_plan, adapters_provenance, adapters_records};
    let plan = adapters_plan(4);
    let records = adapters_records(&plan);
    write(Path::new(path), &synthetic::html(&adapters_provenance(plan), &records, &BTreeMap::new()));
}

fn all(folder: &Path) {
    std::fs::create_dir_all(folder).unwrap();
    for page in pages::full().iter().chain(&pages::sparse()) {
        write(&folder.join(format!("{}.html", page.name)), &page.html);
    }
}

fn write(path: &Path, html: &str) {
    std::fs::write(path, html).unwrap();
    println!("{}", path.display());
}

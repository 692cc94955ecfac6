use std::collections::BTreeSet;

use super::*;
use crate::papers::disks::disks_tests::{native_and_vm, two_adapters};

fn found(
    (paper, place): (&str, &str),
    runs: &[(virtbench_record::Provenance, virtbench_record::Records)],
) -> Vec<(String, String)> {
    let runs: Vec<PaperRun<'_>> =
        runs.iter().map(|(provenance, records)| PaperRun { folder: "run", provenance, records }).collect();
    let table = tables(&runs).into_iter().find(|table| table.paper == paper && table.place == place).unwrap();
    let of =
        |row: PaperTableRow| (row.what, row.found.into_iter().map(|cell| cell.figure).collect::<String>());
    table.rows.into_iter().map(of).collect()
}

#[test]
fn every_paper_has_tables_and_each_row_a_name_of_its_own() {
    let all = tables(&[]);
    assert_eq!(all.iter().map(|table| table.paper.as_str()).collect::<BTreeSet<_>>().len(), 5);
    for table in all {
        let names: BTreeSet<&str> = table.rows.iter().map(|row| row.what.as_str()).collect();
        assert_eq!(names.len(), table.rows.len(), "{}", table.title);
        assert!(
            table.rows.iter().all(|row| row.found.is_empty() && !row.published.is_empty()),
            "{}",
            table.title
        );
    }
}

/// Small blocks at four tenths of native, and larger ones at more.
#[test]
fn ratios_of_a_surface_stand_beside_the_paper_s() {
    let runs = native_and_vm(|key| if key.block_bytes == 4096 { 0.4 } else { 0.7 });
    let rows = found((ESX_DISK, "Figure 8"), &runs);
    let wanted = [("average", "0.60"), ("least", "0.40"), ("most", "0.70")];
    assert_eq!(rows, wanted.map(|(what, figure)| (what.to_owned(), figure.to_owned())));
}

/// One adapter does 1,500 I/O a second with half of a processor, and the other twice as many with all of it.
#[test]
fn adapters_stand_beside_the_paper_s_at_its_points() {
    let runs = two_adapters(2.0, 1.0, |_| [1_500.0, 50.0, 1e5]);
    for (place, figure) in [
        ("Tables 2 and 3", "virtio-blk 1,500, lsi53c895a 3,000"),
        ("Tables 4 and 5", "virtio-blk 30, lsi53c895a 30"),
    ] {
        let rows = found((ESX_ADAPTERS, place), &runs);
        assert!(rows.iter().all(|(_, said)| said == figure), "{place}: {rows:?}");
    }
}

//! What is said of tiles.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

use crate::pages::{synthetic, tiles};

use serde_json::json;
use virtbench_record::{
    Plan, Records, Status, TileLevels, TilesFailureDetail, TilesKey, TilesPlan, TilesRecord,
};

fn plan() -> TilesPlan {
    let member = json!({
        "name": "store", "appliance": "redis", "root": "0", "vcpus": 1, "memory_bytes": 1_u64 << 30, "prepare": [], "uses": {},
        "load": {"kind": "key-value", "users": 1, "rate": 1.0, "think_ns": null, "warehouses": 1, "options": [], "client": null},
        "levels": {"percentile": 95.0, "response_ns": null, "least_per_second": 0.9, "errors_percent": 1.0},
        "reference": 1.0
    });
    serde_json::from_value(json!({
        "tile": "invented", "members": [member], "vm": true, "tiles": {"given": [9]}, "repetitions": 1, "ramp_up_ns": 0,
        "time_ns": 10_000_000_000_u64, "energy": null, "seed": 1, "accelerator": "tcg"
    }))
    .unwrap()
}

/// Nobody broke a service level where nobody was started.
#[test]
fn tiles_that_have_no_memory_are_said_not_to_have_started() {
    let why = "9 tiles need 9GiB of memory, and 8GiB are available on this host".to_owned();
    let status = Status::Failed { why: why.clone(), detail: TilesFailureDetail::default() };
    let record = TilesRecord::new(TilesKey::together(9, 0), 0, status);
    let provenance = synthetic::described(Plan::Tiles(plan()));
    let takeaway = virtbench_report::takeaway(&provenance, &Records::Tiles(vec![record]));
    assert_eq!(takeaway.headline, "No tile fits on vm: 9 tiles could not start, in 1 of 1 run.");
    assert_eq!(takeaway.details[0], format!("Why 9 tiles could not start: {why}."));
    assert!(!takeaway.details.concat().contains("service level"), "{:?}", takeaway.details);
}

/// A host that had no time for the generators has shown nothing of so many tiles.
#[test]
fn a_number_of_tiles_of_which_no_run_counts_is_said_not_to_be_judged() {
    let mut void = tiles::record(2);
    if let Status::Measured(measured) = &mut void.status {
        measured.void.push("the generator of store of tile 1 was the limit".into());
    }
    let mut plan = tiles::plan();
    plan.members.iter_mut().for_each(|member| member.levels = TileLevels::default());
    let provenance = synthetic::described(Plan::Tiles(plan));
    let takeaway = virtbench_report::takeaway(&provenance, &Records::Tiles(vec![tiles::record(1), void]));
    let end = "2 tiles could not be judged: the generator of store of tile 1 was the limit.";
    assert!(takeaway.headline.ends_with(end), "{}", takeaway.headline);
}

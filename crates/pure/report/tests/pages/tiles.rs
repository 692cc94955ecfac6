//! One, two and three tiles of two members, of which the last number is too many.

use serde_json::json;
use virtbench_model::tiles::analyse_tiles;
use virtbench_record::{
    Plan, Provenance, Records, Status, TableFacts, TileDone, TileEnergy, TileHostSecond, TileMemberMeasured,
    TileRow, TileSecond, TileTable, TilesKey, TilesMeasured, TilesPlan, TilesRecord,
};
use virtbench_report::TilesPage;
use virtbench_samples::host::host_use;

use super::synthetic::described;

const SECOND_NS: u64 = 1_000_000_000;
const SECONDS: u64 = 90;

pub fn study() -> (Provenance, Records) {
    let records = Records::Tiles((1..=3).map(record).collect());
    (described(Plan::Tiles(plan())), records)
}

pub fn plan() -> TilesPlan {
    let member = |name: &str| {
        json!({
            "name": name, "appliance": "redis", "root": "0", "vcpus": 1, "memory_bytes": 1_u64 << 30, "prepare": [], "uses": {},
            "load": {"kind": "key-value", "users": 1, "rate": 1.0, "think_ns": null, "warehouses": 1, "options": [], "client": null},
            "levels": {"percentile": 95.0, "response_ns": 20_000_000_u64, "least_per_second": 80.0, "errors_percent": 1.0},
            "reference": 100.0
        })
    };
    serde_json::from_value(json!({
        "tile": "invented", "members": [member("store"), member("shop")], "vm": true, "tiles": {"given": [1, 2, 3]},
        "repetitions": 1, "ramp_up_ns": 0, "time_ns": SECONDS * SECOND_NS, "energy": null, "seed": 1, "accelerator": "tcg"
    }))
    .unwrap()
}

fn member(tiles: u32, tile: u32, name: &str) -> TileMemberMeasured {
    let completed = if tiles < 3 { 100 } else { 70 };
    let series = (0..SECONDS).map(|second| TileSecond {
        start_ns: second * SECOND_NS,
        completed: completed + (second * 7 + u64::from(tile)) % 11,
        failed: 0,
        response_ns: Some(u64::from(tiles) * 5_000_000 + (second * 13 + u64::from(tile) * 5) % 17 * 400_000),
    });
    let done = TileDone {
        per_second: completed as f64 + 5.0,
        completed: Some(completed * SECONDS),
        series: series.collect(),
        busiest_thread_percent: Some(20.0),
        ..TileDone::default()
    };
    TileMemberMeasured {
        tile,
        member: name.into(),
        ready_ns: SECOND_NS,
        network_thread_percent: None,
        done: Some(done),
    }
}

pub fn record(tiles: u32) -> TilesRecord {
    let members = (1..=tiles).flat_map(|tile| ["store", "shop"].map(|name| member(tiles, tile, name)));
    let cpu_percent = 62.0 * f64::from(tiles);
    let seconds = (0..SECONDS).map(|second| TileHostSecond {
        start_ns: second * SECOND_NS,
        cpu_percent: cpu_percent + (second * 5 % 13) as f64,
        steal_percent: (second % 4) as f64,
        available_bytes: Some((6 << 30) - (second << 20)),
        disk_percent: Some((second * 11 % 40) as f64),
        network_percent: None,
    });
    let host = host_use(cpu_percent, cpu_percent * 0.8, cpu_percent * 0.2);
    let measured = TilesMeasured {
        ready_ns: SECOND_NS,
        members: members.collect(),
        host,
        memory_bytes: Some(8 << 30),
        seconds: seconds.collect(),
        energy: TileEnergy::Unavailable("nothing tells".into()),
        elapsed_ns: SECONDS * SECOND_NS,
        infrastructure: None,
        void: Vec::new(),
    };
    TilesRecord::new(TilesKey::together(tiles, 0), 0, Status::measured(measured))
}

/// Two hosts up to four tiles.
pub fn table() -> String {
    let mut rows = Vec::new();
    for (configuration, scale) in [("old host", 1.0), ("new host", 1.3)] {
        for tiles in 1..=4u32 {
            for tile in 1..=tiles {
                for member in ["store", "shop", "mail"] {
                    let left = 1.0 / (1.0 + 0.1 * f64::from(tiles * tiles));
                    rows.push(TileRow {
                        configuration: configuration.into(),
                        repetition: 0,
                        tiles,
                        tile,
                        member: member.into(),
                        done: Some([100.0 * scale * left, 100.0]),
                        held: Some(tiles < 4),
                    });
                }
            }
        }
    }
    let table = TileTable { facts: TableFacts(vec![("title".into(), "Two hosts".into())]), rows };
    TilesPage { table: &table, analysis: &analyse_tiles(&table.rows, 1) }.html()
}

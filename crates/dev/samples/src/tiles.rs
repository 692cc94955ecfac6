//! Tiles of invented members.

use std::collections::BTreeMap;

use virtbench_record::{
    HostUse, Status, TileDone, TileEnergy, TileLevels, TileLoad, TileLoadKind, TileMemberMeasured,
    TileMemberPlan, TileNumbers, TilesKey, TilesMeasured, TilesPlan, TilesRecord,
};

use crate::host::host_use;

const SECOND_NS: u64 = 1_000_000_000;

pub fn member(name: &str, kind: TileLoadKind, reference: Option<f64>) -> TileMemberPlan {
    let load = TileLoad {
        kind,
        users: None,
        rate: None,
        think_ns: None,
        warehouses: 1,
        options: Vec::new(),
        client: None,
    };
    TileMemberPlan {
        name: name.into(),
        appliance: name.into(),
        root: String::new(),
        vcpus: 1,
        memory_bytes: 1 << 28,
        prepare: Vec::new(),
        prepare_by: None,
        uses: BTreeMap::new(),
        at: Vec::new(),
        load,
        levels: TileLevels {
            percentile: 95.0,
            response_ns: None,
            least_per_second: Some(0.9),
            errors_percent: 1.0,
        },
        reference,
    }
}

/// Mail and a database, whose reference values are 1 each, and an idle member.
pub fn plan(tiles: TileNumbers) -> TilesPlan {
    TilesPlan {
        tile: "invented".into(),
        members: vec![
            member("mail", TileLoadKind::Mail, Some(1.0)),
            member("oltp", TileLoadKind::Oltp, Some(1.0)),
            member("standby", TileLoadKind::Idle, None),
        ],
        vm: true,
        existing: false,
        host: None,
        network: "user".into(),
        tiles,
        repetitions: 1,
        ramp_up_ns: SECOND_NS,
        time_ns: 10 * SECOND_NS,
        energy: None,
        seed: 1,
        accelerator: "tcg".into(),
        infrastructure: None,
        predict: false,
    }
}

pub fn host(busy_percent: f64) -> HostUse {
    HostUse { each_percent: vec![busy_percent / 2.0; 2], ..host_use(busy_percent, busy_percent, 0.0) }
}

/// Each tile's mail and database do so much a second.
pub fn record(tiles: u32, repetition: u32, rates: [f64; 2]) -> TilesRecord {
    let one = |tile: u32, member: &str, rate: Option<f64>| TileMemberMeasured {
        tile,
        member: member.into(),
        ready_ns: 1,
        network_thread_percent: None,
        done: rate.map(|per_second| TileDone { per_second, completed: Some(100), ..TileDone::default() }),
    };
    let members = (1..=tiles).flat_map(|tile| {
        [one(tile, "mail", Some(rates[0])), one(tile, "oltp", Some(rates[1])), one(tile, "standby", None)]
    });
    let measured = TilesMeasured {
        ready_ns: 1,
        members: members.collect(),
        host: host(if rates[1] < 0.9 { 198.0 } else { 100.0 }),
        memory_bytes: Some(8 << 30),
        seconds: Vec::new(),
        energy: TileEnergy::Unavailable("no energy source".into()),
        elapsed_ns: 10 * SECOND_NS,
        infrastructure: None,
        void: Vec::new(),
    };
    TilesRecord::new(TilesKey::together(tiles, repetition), 0, Status::measured(measured))
}

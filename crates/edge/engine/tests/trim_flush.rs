//! Trims and flushes of a real file.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::os::unix::fs::MetadataExt;

use common::{SIZE, apply, folder, spec, target};
use virtbench_workload::{EngineKind, LoadSpec};

#[test]
fn trims_give_room_back_and_flushes_are_timed_with_either_engine() {
    for engine in [EngineKind::IoUring, EngineKind::Psync] {
        let folder = folder();
        let path = folder.path().join("t.img");
        let target = target(&path);
        let outstanding = if engine == EngineKind::Psync { 1 } else { 8 };
        let mut load = LoadSpec { engine, outstanding, flush_every: Some(4), ..spec(20.0) };
        load.access.lines[0].trim_percent = 90.0;
        let outcome = apply(&load, &target);
        let [trim, flush] = [outcome.trim.unwrap(), outcome.flush.unwrap()];
        assert_eq!(outcome.errors, 0, "{:?}", outcome.error_kinds);
        assert!(trim.operations > outcome.write.operations && trim.latency_ns.is_some(), "{trim:?}");
        assert!(flush.operations > 0 && flush.bytes == 0, "{flush:?}");
        let all = outcome.read.operations + outcome.write.operations + trim.operations;
        assert_eq!(outcome.total.operations, all);
        let held = std::fs::metadata(&path).unwrap().blocks() * 512;
        assert!(held < SIZE, "{engine:?}: no hole was punched ({held} bytes held)");
    }
}

#[test]
fn a_load_without_them_has_none_in_its_outcome() {
    let folder = folder();
    let outcome = apply(&spec(50.0), &target(&folder.path().join("t.img")));
    assert_eq!((outcome.trim, outcome.flush, outcome.open_loop, outcome.verify), (None, None, None, None));
}

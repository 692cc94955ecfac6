//! Verification on real files that are damaged behind the engine's back.

#![allow(clippy::unwrap_used)]

use crate::common;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::{apply, attempt, folder, spec, target};
use virtbench_engine::{Control, Target, verify};
use virtbench_record::{Damage, Verification};
use virtbench_workload::{EngineKind, LoadSpec};

const BLOCK: u64 = 4096;
/// Few blocks, so that each is written many times.
const REGION: u64 = 64 * BLOCK;

fn verified(read_percent: f64) -> LoadSpec {
    LoadSpec { verify: true, region_bytes: REGION, ..spec(read_percent) }
}

fn check(spec: &LoadSpec, target: &Target) -> Verification {
    verify(spec, target, &Control::new(1)).unwrap().found
}

fn damages(found: &Verification) -> Vec<(u64, Damage)> {
    found.examples.iter().map(|example| (example.offset, example.damage)).collect()
}

fn editor(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

#[test]
fn an_honest_target_raises_no_alarm_with_any_engine_and_mix() {
    for engine in [EngineKind::IoUring, EngineKind::Psync] {
        let folder = folder();
        let target = target(&folder.path().join("t.img"));
        let outstanding = if engine == EngineKind::Psync { 1 } else { 16 };
        let mut load = LoadSpec { engine, outstanding, workers: 2, ..verified(50.0) };
        // Overlapping blocks of several sizes, trims and flushes, many at once on few blocks.
        load.access.lines[0].size_bytes = 3 * BLOCK;
        load.access.lines[0].align_bytes = BLOCK;
        load.access.lines[0].trim_percent = 10.0;
        load.flush_every = Some(10);
        let outcome = apply(&load, &target);
        let found = outcome.verify.unwrap();
        assert_eq!(found.damaged(), 0, "{engine:?}: {:?}", found.examples);
        assert!(found.complete && found.blocks_checked > 100, "{found:?}");
        assert!(outcome.read.operations > 0 && outcome.write.operations > 0);
    }
}

#[test]
fn a_later_run_with_the_same_seed_tells_each_kind_of_damage() {
    let folder = folder();
    let path = folder.path().join("t.img");
    let target = target(&path);
    let load = verified(0.0);
    apply(&load, &target);
    let clean = check(&load, &target);
    assert_eq!((clean.damaged(), clean.complete), (0, true), "{:?}", clean.examples);
    assert!(clean.blocks_checked > 32, "{clean:?}");

    let file = editor(&path);
    let mut block = vec![0; 4096];
    // Misplaced: block 1 is put where block 2 belongs.
    file.read_exact_at(&mut block, BLOCK).unwrap();
    file.write_all_at(&block, 2 * BLOCK).unwrap();
    // Corrupt: a bit of block 3 flips.
    file.read_exact_at(&mut block, 3 * BLOCK).unwrap();
    block[2000] ^= 1;
    file.write_all_at(&block, 3 * BLOCK).unwrap();
    // Torn: another load goes on writing, and of its new block 5 only the first half arrives.
    let old = fs::read(&path).unwrap();
    apply(&load, &target);
    apply(&LoadSpec { time_ns: 300_000_000, ..load.clone() }, &target);
    let half = 2048;
    let at = 5 * 4096;
    let new = fs::read(&path).unwrap();
    assert_ne!(old[at..at + 4096], new[at..at + 4096], "block 5 was not written again");
    file.write_all_at(&old[at..at + half], 5 * BLOCK).unwrap();
    let found = check(&load, &target);
    assert_eq!(damages(&found), [(5 * BLOCK, Damage::Torn)], "the load repaired the others");

    file.write_all_at(&new[at..at + 4096], 5 * BLOCK).unwrap();
    file.write_all_at(&new[4096..8192], 2 * BLOCK).unwrap();
    file.read_exact_at(&mut block, 3 * BLOCK).unwrap();
    block[2000] ^= 1;
    file.write_all_at(&block, 3 * BLOCK).unwrap();
    let found = check(&load, &target);
    assert_eq!(damages(&found), [(2 * BLOCK, Damage::Misplaced), (3 * BLOCK, Damage::Corrupt)]);

    // To a run with another seed, all of it is foreign, and it is told whose.
    let found = check(&LoadSpec { seed: 6, ..load }, &target);
    assert_eq!(found.foreign + found.corrupt, found.blocks_checked, "{found:?}");
    assert!(found.examples[0].words.contains("seed 5"), "{:?}", found.examples);
    assert_eq!(found.examples.len(), Verification::MAX_EXAMPLES);
}

/// Runs a verified load while `block` is put at block 7 again and again.
fn sabotaged(target: &Target, file: &File, block: &[u8]) -> Verification {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                file.write_all_at(block, 7 * BLOCK).unwrap();
                std::thread::yield_now();
            }
        });
        let outcome = apply(&LoadSpec { time_ns: 300_000_000, ..verified(50.0) }, target);
        over.store(true, Ordering::Relaxed);
        outcome.verify.unwrap()
    })
}

#[test]
fn writes_that_are_undone_while_the_load_runs_are_stale_or_lost() {
    let folder = folder();
    let path = folder.path().join("t.img");
    let target = target(&path);
    // What the target held before the load has no header; a version of a first load is older, too.
    let file = editor(&path);
    let read = || {
        let mut block = vec![0; 4096];
        file.read_exact_at(&mut block, 7 * BLOCK).unwrap();
        block
    };
    let (filled, mut load, until) = (read(), verified(0.0), Instant::now() + Duration::from_secs(60));
    // On a host that is busy a short one does not get to that block.
    while read() == filled {
        assert!(Instant::now() < until, "no load wrote the block");
        apply(&load, &target);
        load.time_ns *= 2;
    }
    let block = read();
    let found = sabotaged(&target, &file, &block);
    assert!(found.stale + found.lost > 0, "{found:?}");
    assert_eq!(found.misplaced + found.foreign + found.corrupt, 0, "{found:?}");
    assert!(found.examples.iter().all(|example| example.offset == 7 * BLOCK), "{:?}", found.examples);
    assert!(found.examples[0].words.contains("was acknowledged"), "{:?}", found.examples);
}

#[test]
fn a_write_that_lands_on_another_block_is_misplaced() {
    let folder = folder();
    let path = folder.path().join("t.img");
    let target = target(&path);
    apply(&verified(0.0), &target);
    let file = editor(&path);
    let mut block = vec![0; 4096];
    file.read_exact_at(&mut block, 9 * BLOCK).unwrap();
    let found = sabotaged(&target, &file, &block);
    assert!(found.misplaced > 0, "{found:?}");
    assert!(found.examples[0].words.contains(&format!("offset {}", 9 * BLOCK)), "{:?}", found.examples);
}

#[test]
fn a_target_that_keeps_nothing_and_a_region_with_too_many_blocks_are_refused() {
    let null = target(Path::new("null"));
    let message = attempt(&verified(50.0), &null).unwrap_err().to_string();
    assert!(message.contains("--verify") && message.contains("null"), "{message}");
    let mut odd = verified(50.0);
    odd.access.lines[0].align_bytes = 1000;
    assert!(attempt(&odd, &null).unwrap_err().to_string().contains("`align_bytes`"));
}

//! Power fails while a commit is written, and again when the cache has just been recovered.
//!
//! The crash contract stands in `world/disk.rs`. Every subset of the log's sectors that hold entries persists in turn, at
//! the first failure and at the second. What a guest saw between the two must stay.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code)] // the random histories use more of it
use crate::world;

use virtbench_fence::cache::{CacheConfig, CachePartitions, Layout};
use virtbench_fence::{Backing, Config, DeviceConfig, DiskConfig, Op, SchedulerConfig};
use world::World;
use world::disk::Disk;

/// Three chunks of the log, so that a commit does not repeat what it says.
const BLOCKS: u32 = 130;
const DISK_BLOCKS: u64 = 70;

/// What is torn.
#[derive(Debug, Clone, Copy)]
struct Torn {
    /// Entries of the commit.
    entries: u64,
    /// It is torn at so many bytes.
    at_bytes: usize,
}

/// Entries that need a second sector.
const SECTORS: Torn = Torn { entries: 16, at_bytes: 512 };
/// Entries that need a second log block.
const LOG_BLOCKS: Torn = Torn { entries: 65, at_bytes: 4096 };

fn config() -> Config {
    let cache = CacheConfig {
        uuid: [9; 16],
        partitions: CachePartitions::Shared(BLOCKS),
        free_target: 4,
        low_watermark: 1,
        scratch_blocks: 2,
        bypass_bytes: Vec::new(),
    };
    let size_bytes = DISK_BLOCKS * 4096;
    Config {
        disks: vec![DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes }],
        slow: DeviceConfig { size_bytes, depth: 2 },
        fast: DeviceConfig { size_bytes: Layout::new(&[BLOCKS]).end_bytes, depth: 4 },
        backing: Backing::Cached(cache),
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 8192,
    }
}

fn settle(world: &mut World) {
    while world.in_flight() > 0 {
        world.complete(0);
    }
}

/// A commit of which so many steps are done, behind another on the log.
fn committing(torn: Torn, steps: usize) -> World {
    let mut world = World::new(config());
    world.checksums = false;
    world.submit(0, Op::Write, (DISK_BLOCKS - 1) * 8, 8);
    settle(&mut world);
    world.submit(0, Op::Flush, 0, 0);
    // Written while the first commit is in progress, all are of the second.
    for block in 0..torn.entries {
        world.submit(0, Op::Write, block * 8, 8);
        while world.in_flight() > 1 {
            world.complete(1);
        }
    }
    world.submit(0, Op::Flush, 0, 0);
    for _ in 0..3 + steps {
        world.complete(0);
    }
    world
}

/// What may persist or not: each piece of the log that would change, each write of data as a whole.
fn choices(torn: Torn, disk: &Disk) -> Vec<(usize, Option<usize>)> {
    let log_end = Layout::new(&[BLOCKS]).partitions[0].data_offset_bytes as usize;
    let mut choices = Vec::new();
    for (index, write) in disk.unflushed.iter().enumerate() {
        if write.offset >= log_end {
            choices.push((index, None));
            continue;
        }
        let old = &disk.medium[write.offset..write.offset + write.bytes.len()];
        let both = write.bytes.chunks(torn.at_bytes).zip(old.chunks(torn.at_bytes)).enumerate();
        choices.extend(both.filter(|(_, (new, old))| new != old).map(|(piece, _)| (index, Some(piece))));
    }
    choices
}

fn fail_power(torn: Torn, world: &mut World, subset: usize) {
    world.fail_power(|_, disk| {
        let choices = choices(torn, disk);
        let order: Vec<usize> = (0..disk.unflushed.len()).collect();
        disk.crash(&order, |write, sector| {
            let at = choices
                .iter()
                .position(|&at| at == (write, Some(sector * 512 / torn.at_bytes)) || at == (write, None));
            at.is_some_and(|bit| subset >> bit & 1 == 1)
        });
    });
}

fn subsets(torn: Torn, world: &World) -> usize {
    let bits = choices(torn, &world.disks[1]).len();
    assert!(bits <= 10 && world.disks[0].unflushed.is_empty(), "{bits} choices: shorten the history");
    1 << bits
}

/// After the first failure a guest sees `block`, and perhaps goes on; how many second failures were tried.
fn fail_again(torn: Torn, steps: usize, first: usize, block: u64, goes_on: bool) -> usize {
    let mut tried = 0;
    for more in 0.. {
        let mut second = 0;
        loop {
            let mut world = committing(torn, steps);
            fail_power(torn, &mut world, first);
            world.peek(0, block);
            if goes_on {
                world.submit(0, Op::Write, (DISK_BLOCKS - 2) * 8, 8);
                world.submit(0, Op::Flush, 0, 0);
            }
            for _ in 0..more {
                if world.in_flight() == 0 {
                    return tried;
                }
                world.complete(0);
            }
            let all = subsets(torn, &world);
            fail_power(torn, &mut world, second);
            world.verify();
            tried += 1;
            second += 1;
            if second == all {
                break;
            }
        }
    }
    tried
}

/// Every subset at both failures; the guest sees the first or the last block of the torn commit.
fn torn_twice(torn: Torn, goes_on: bool) {
    let mut tried = 0;
    for steps in 1..4 {
        for first in 0..subsets(torn, &committing(torn, steps)) {
            for block in [0, torn.entries - 1] {
                tried += fail_again(torn, steps, first, block, goes_on);
            }
        }
    }
    println!("{tried} pairs of power failures");
    assert!(tried > 100, "{tried}");
}

#[test]
fn what_was_seen_after_a_torn_commit_outlives_a_second_failure() {
    torn_twice(SECTORS, false);
    torn_twice(LOG_BLOCKS, false);
}

#[test]
fn what_was_seen_after_a_torn_commit_outlives_the_commits_that_follow() {
    torn_twice(SECTORS, true);
    torn_twice(LOG_BLOCKS, true);
}

/// A commit that retires so many blocks and repeats what others say, of which so many steps are done, behind so many more.
fn retiring(entries: u64, before: u64, steps: usize) -> World {
    let mut world = World::new(config());
    world.checksums = false;
    for block in 0..before {
        world.submit(0, Op::Write, (DISK_BLOCKS - 1 - block) * 8, 8);
        settle(&mut world);
        world.submit(0, Op::Flush, 0, 0);
        settle(&mut world);
    }
    for _ in 0..2 {
        for block in 0..entries {
            world.submit(0, Op::Write, block * 8, 8);
            settle(&mut world);
        }
        world.submit(0, Op::Flush, 0, 0);
        settle(&mut world);
    }
    world.submit(0, Op::Flush, 0, 0);
    for _ in 0..steps {
        world.complete(0);
    }
    world
}

/// The number of a commit that was cut off is used up, and no later commit may say that it was whole: a start would miss it, and believe
/// what is left of it.
#[test]
fn a_flush_of_nothing_makes_no_commit_whole_that_was_cut_off() {
    let mut tried = 0;
    let histories =
        (0..3).flat_map(|before| (1..3).flat_map(move |steps| (0..4).map(move |more| (before, steps, more))));
    for (before, steps, more) in histories {
        for persist in 0..subsets(SECTORS, &retiring(24, before, steps)) {
            let mut world = retiring(24, before, steps);
            fail_power(SECTORS, &mut world, persist);
            world.submit(0, Op::Flush, 0, 0);
            settle(&mut world);
            for block in 0..more {
                world.submit(0, Op::Write, block * 8, 8);
                settle(&mut world);
                world.submit(0, Op::Flush, 0, 0);
                settle(&mut world);
            }
            fail_power(SECTORS, &mut world, 0);
            world.verify();
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
}

//! Data that changes on the fast device by itself. A clean block is read from the slow device instead and cached anew; a
//! dirty one, of which there is no other copy, is an error and never wrong data.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code)] // the random histories use more of it
use crate::world;

use virtbench_fence::cache::{CacheConfig, CachePartitions, Image, Layout, inspect};
use virtbench_fence::{Backing, Config, DeviceConfig, DiskConfig, Op, SchedulerConfig};
use world::World;

const BLOCKS: u32 = 40;
const DISK_BLOCKS: u64 = 16;

fn world() -> World {
    let cache = CacheConfig {
        uuid: [9; 16],
        partitions: CachePartitions::Shared(BLOCKS),
        free_target: 8,
        low_watermark: 1,
        scratch_blocks: 4,
        bypass_bytes: Vec::new(),
    };
    let size_bytes = DISK_BLOCKS * 4096;
    World::new(Config {
        disks: vec![DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes }],
        slow: DeviceConfig { size_bytes, depth: 2 },
        fast: DeviceConfig { size_bytes: Layout::new(&[BLOCKS]).end_bytes, depth: 4 },
        backing: Backing::Cached(cache),
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 16384,
    })
}

fn ask(world: &mut World, op: Op, sector: u64, sectors: u32) {
    world.submit(0, op, sector, sectors);
    while world.in_flight() > 0 {
        world.complete(0);
    }
}

/// Flips a bit of what the cache holds of a block. It must hold it.
fn flip(world: &mut World, block: u64, byte: usize, dirty: bool) {
    let logs = world::image_of(&world.config, &world.disks[1]);
    let superblocks = world.disks[1].read(0, 8192);
    let found = inspect(&Image { superblocks: &superblocks, logs: &logs, memory: None }).unwrap();
    let live = found.live(0).find(|live| live.disk_offset_bytes == block * 4096).expect("it is cached");
    assert_eq!(live.dirty, dirty);
    world.disks[1].medium[live.fast_offset_bytes as usize + byte] ^= 0x10;
}

/// Each part of a block is read beside a byte of it that has changed.
fn parts(byte: usize) -> impl Iterator<Item = (u64, u32)> {
    let sector = byte as u64 / 512;
    [(sector, 1), ((sector + 1) % 8, 1), (0, 8), (2, 5), (4, 4)].into_iter()
}

#[test]
fn a_clean_block_that_changed_is_read_from_the_slow_device_whatever_part_is_asked_for() {
    for byte in [0, 511, 512, 2049, 4095] {
        for (sector, sectors) in parts(byte) {
            let mut world = world();
            ask(&mut world, Op::Read, 0, 8);
            ask(&mut world, Op::Flush, 0, 0);
            flip(&mut world, 0, byte, false);
            let misses = |world: &World| world.fence.cache_counts().next().unwrap().misses;
            let before = misses(&world);
            ask(&mut world, Op::Read, sector, sectors);
            assert!(misses(&world) > before, "byte {byte}, sectors {sector} + {sectors}: not noticed");
            // Cached anew: nothing is left of it.
            ask(&mut world, Op::Read, 0, 8);
            let again = misses(&world);
            ask(&mut world, Op::Read, sector, sectors);
            assert_eq!(misses(&world), again);
            assert_eq!(world.failed, 0);
        }
    }
}

#[test]
fn a_dirty_block_that_changed_is_an_error_whatever_part_is_asked_for_until_it_is_overwritten() {
    for byte in [0, 511, 512, 2049, 4095] {
        let mut world = world();
        ask(&mut world, Op::Write, 0, 8);
        ask(&mut world, Op::Flush, 0, 0);
        flip(&mut world, 0, byte, true);
        world.expect_failures();
        for (number, (sector, sectors)) in (1..).zip(parts(byte)) {
            ask(&mut world, Op::Read, sector, sectors);
            assert_eq!(world.failed, number, "byte {byte}, sectors {sector} + {sectors}");
        }
        // What is written over a part of it would be stored with the rest of it.
        ask(&mut world, Op::Write, 3, 2);
        assert_eq!(world.failed, 6);
        ask(&mut world, Op::Write, 0, 8);
        ask(&mut world, Op::Read, 1, 2);
        assert_eq!(world.failed, 6);
    }
}

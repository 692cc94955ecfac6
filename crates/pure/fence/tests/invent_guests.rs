//! Guests made of anybody's bytes: they share, repeat and change their buffers while requests are in flight, devices answer
//! in any order, and in the end what a cache holds is what it should be. The fuzz target `guests` feeds the same function.

#![allow(
    clippy::cast_possible_truncation,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::missing_panics_doc
)]

#[allow(dead_code, missing_docs)] // other tests use more of it
use crate::world;

use virtbench_fence::cache::{CacheConfig, CachePartitions, Layout};
use virtbench_fence::{Backing, Config, DeviceConfig, DiskConfig, Op, SchedulerConfig};
use world::World;
use world::guests::Buffer;

const DISK_BLOCKS: u64 = 20;
/// Requests and interferences at most.
const MOST_OPS: usize = 256;
/// Requests in flight at most.
const MOST_WAITING: usize = 6;

fn config(choice: u8) -> Config {
    let partitions = match choice % 2 {
        0 => CachePartitions::Shared(24),
        _ => CachePartitions::PerDisk(vec![10, 40]),
    };
    let disk = |n: u8| DiskConfig {
        uuid: [n + 1; 16],
        offset_bytes: u64::from(n) * DISK_BLOCKS * 4096,
        size_bytes: DISK_BLOCKS * 4096,
    };
    Config {
        disks: vec![disk(0), disk(1)],
        slow: DeviceConfig { size_bytes: 2 * DISK_BLOCKS * 4096, depth: 1 + u32::from(choice >> 1 & 3) },
        fast: DeviceConfig { size_bytes: Layout::new(partitions.blocks()).end_bytes, depth: 4 },
        backing: Backing::Cached(CacheConfig {
            uuid: [9; 16],
            partitions,
            free_target: 4,
            low_watermark: 1,
            scratch_blocks: 1 + u32::from(choice >> 3 & 7),
            bypass_bytes: Vec::new(),
        }),
        scheduler: if choice < 128 { SchedulerConfig::Fifo } else { SchedulerConfig::Elevator },
        max_request_bytes: 8192,
    }
}

fn submit(world: &mut World, op: u8, mut byte: impl FnMut() -> u8) {
    let disk = u16::from(op >> 7);
    // Few blocks mostly, so that versions of one block meet.
    let block = u64::from(byte()) % if op & 64 == 0 { 4 } else { DISK_BLOCKS - 1 };
    let shape = byte();
    let (sector, sectors) = match shape % 4 {
        0 => (block * 8 + u64::from(shape >> 2 & 7), 1 + u32::from(shape >> 5)),
        1 => (block * 8, 16),
        _ => (block * 8, 8),
    };
    let buffer = match byte() % 8 {
        0..=2 => Buffer::Shared,
        3 => Buffer::Repeated(8),
        4 => Buffer::Repeated(3),
        _ => Buffer::Own,
    };
    match op % 8 {
        0 | 1 => world.submit_in(buffer, disk, Op::Write, sector, sectors),
        2 | 3 => world.submit_in(buffer, disk, Op::Read, sector, sectors),
        _ if sectors % 2 == 0 => world.submit(disk, Op::Flush, 0, 0),
        _ => world.submit(disk, Op::Discard, sector, sectors),
    }
}

/// Plays what the bytes say; every read must find what may be there. When everything has settled each block reads twice the
/// same, every cached block has its checksum, and a clean one is what the slow device holds.
pub fn play(bytes: &[u8]) {
    let mut bytes = bytes.iter().copied();
    let mut world = World::new(config(bytes.next().unwrap_or(0)));
    for _ in 0..MOST_OPS {
        let Some(op) = bytes.next() else { break };
        let mut byte = || bytes.next().unwrap_or(0);
        let index = |byte: u8, bound: usize| usize::from(byte) % bound;
        match op % 8 {
            0..=4 if world.waiting() < MOST_WAITING => submit(&mut world, op, byte),
            5 if world.waiting() > 0 => world.scribble(index(byte(), world.waiting()), index(byte(), 16)),
            _ if world.in_flight() > 0 => world.complete(index(op >> 3, world.in_flight())),
            _ if op >= 248 => world.calm(|_| 0),
            _ => drop(world.wait()),
        }
    }
    world.calm(|_| 0);
    world.kill(false, || true);
    world.verify();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn guests_that_share_and_change_their_buffers_find_what_is_on_their_disks(
            bytes in prop::collection::vec(any::<u8>(), 0..600),
        ) {
            super::play(&bytes);
        }
    }
}

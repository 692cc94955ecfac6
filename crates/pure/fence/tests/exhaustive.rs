//! Small histories, cut off after every single event, with every choice of what reached the medium.
//!
//! The crash contract stands in `world/disk.rs`. Of each unflushed write nothing, everything, the first half or the
//! second half of its sectors persists; of a write of metadata also everything but one sector, and one sector alone.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, clippy::expect_used)]

#[allow(dead_code)] // the random histories use more of it
use crate::world;

use virtbench_fence::cache::{CacheConfig, CachePartitions, Layout};
use virtbench_fence::{Backing, Config, DeviceConfig, DiskConfig, Op, SchedulerConfig};
use world::World;
use world::disk::Unflushed;

/// The first disk writes past the cache, if so from its first block on.
fn config(blocks: u32, bypasses: bool) -> Config {
    let cache = CacheConfig {
        uuid: [9; 16],
        partitions: CachePartitions::Shared(blocks),
        free_target: 4,
        low_watermark: 1,
        scratch_blocks: 2,
        bypass_bytes: if bypasses { vec![Some(0)] } else { Vec::new() },
    };
    let disk =
        |n: u8| DiskConfig { uuid: [n + 1; 16], offset_bytes: u64::from(n) * 16384, size_bytes: 16384 };
    Config {
        disks: vec![disk(0), disk(1)],
        slow: DeviceConfig { size_bytes: 32768, depth: 2 },
        fast: DeviceConfig { size_bytes: 65536, depth: 4 },
        backing: Backing::Cached(cache),
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 8192,
    }
}

/// What may persist of a write, as bit masks of its sectors.
fn fates(write: &Unflushed, is_log: bool) -> Vec<u64> {
    let sectors = write.bytes.len() / 512;
    let all = (1u64 << sectors) - 1;
    let half = (1u64 << (sectors / 2)) - 1;
    let mut fates = vec![0, all, half, all & !half];
    if is_log {
        // Sectors that hold nothing need not be told apart.
        let used = (0..sectors).filter(|s| write.bytes[s * 512..(s + 1) * 512].iter().any(|&byte| byte != 0));
        fates.extend(used.flat_map(|sector| [1 << sector, all & !(1 << sector)]));
    }
    fates.sort_unstable();
    fates.dedup();
    fates
}

#[derive(Clone, Copy)]
enum Step {
    Ask(u16, Op, u64, u32),
    Settle,
}
use Step::{Ask, Settle};

/// Runs the history until `events` device I/Os have completed. False if it has no more.
fn run(config: &Config, history: &[Step], events: usize, checksums: bool) -> (World, bool) {
    run_in(World::new(config.clone()), history, events, checksums)
}

fn run_in(mut world: World, history: &[Step], events: usize, checksums: bool) -> (World, bool) {
    world.checksums = checksums;
    let mut left = events;
    for step in history {
        match *step {
            Ask(disk, op, sector, sectors) => world.submit(disk, op, sector, sectors),
            Settle => {
                while world.in_flight() > 0 {
                    if left == 0 {
                        return (world, true);
                    }
                    left -= 1;
                    world.complete(0);
                }
            }
        }
    }
    (world, false)
}

/// Whatever the crash has left is evicted by other blocks; what was found then must be found again.
fn outlive(world: &mut World) {
    for block in 0..8 {
        world.submit(1, Op::Write, block % 4 * 8, 8);
        world.settle(|_| 0);
    }
    while world.in_flight() > 0 {
        world.complete(0);
    }
    for block in 0..4 {
        world.submit(0, Op::Read, block * 8, 8);
        world.settle(|_| 0);
    }
}

/// What may persist of each unflushed write.
fn choices(world: &World) -> Vec<Vec<u64>> {
    let Backing::Cached(cache) = &world.config.backing else { panic!("no cache") };
    let log_end = Layout::new(cache.partitions.blocks()).partitions[0].data_offset_bytes as usize;
    let of = |device: usize| {
        let log = move |write: &Unflushed| device == 1 && write.offset < log_end;
        world.disks[device].unflushed.iter().map(move |write| fates(write, log(write)))
    };
    of(0).chain(of(1)).collect()
}

/// Power fails in one of the ways that there are.
fn crash_so(world: &mut World, choices: &[Vec<u64>], mut combination: usize) {
    let mut fate = Vec::new();
    for choices in choices {
        fate.push(choices[combination % choices.len()]);
        combination /= choices.len();
    }
    let mut first = 0;
    world.crash(|_, disk| {
        let order: Vec<usize> = (0..disk.unflushed.len()).collect();
        let fate = &fate[first..];
        first += order.len();
        disk.crash(&order, |write, sector| fate[write] >> sector & 1 == 1);
    });
}

/// Crashes at every event of the history in every way; returns how many crashes that were.
fn crash_everywhere(blocks: u32, history: &[Step]) -> u64 {
    crash_everywhere_of(&config(blocks, false), history)
}

fn crash_everywhere_of(config: &Config, history: &[Step]) -> u64 {
    const MOST: usize = 20_000;
    let mut crashes = 0;
    for events in 0.. {
        let (world, more) = run(config, history, events, false);
        let choices = choices(&world);
        let combinations: usize = choices.iter().map(Vec::len).product();
        assert!(combinations <= MOST, "{combinations} ways to crash: shorten the history");
        for combination in 0..combinations {
            for checksums in [false, true] {
                let (mut world, _) = run(config, history, events, checksums);
                crash_so(&mut world, &choices, combination);
                outlive(&mut world);
                crashes += 1;
            }
        }
        if !more {
            println!("{crashes} crashes");
            return crashes;
        }
    }
    crashes
}

#[test]
fn an_overwrite_after_a_flush_is_safe_at_every_event() {
    let crashes = crash_everywhere(
        7,
        &[
            Ask(0, Op::Write, 0, 8),
            Settle,
            Ask(0, Op::Flush, 0, 0),
            Settle,
            Ask(0, Op::Write, 0, 8),
            Settle,
            Ask(0, Op::Flush, 0, 0),
            Settle,
        ],
    );
    assert!(crashes > 50, "{crashes}");
}

#[test]
fn part_of_a_block_and_two_disks_are_safe_at_every_event() {
    let crashes = crash_everywhere(
        7,
        &[
            Ask(0, Op::Write, 3, 2),
            Ask(1, Op::Write, 3, 2),
            Settle,
            Ask(1, Op::Flush, 0, 0),
            Settle,
            Ask(0, Op::Write, 4, 1),
            Settle,
            Ask(0, Op::Flush, 0, 0),
            Settle,
        ],
    );
    assert!(crashes > 50, "{crashes}");
}

#[test]
fn eviction_and_reuse_are_safe_at_every_event() {
    let mut history = Vec::new();
    for block in 0..4 {
        history.extend([Ask(0, Op::Write, block * 8, 8), Settle, Ask(0, Op::Flush, 0, 0), Settle]);
    }
    history.extend([
        Ask(1, Op::Read, 0, 8),
        Settle,
        Ask(1, Op::Write, 8, 8),
        Settle,
        Ask(1, Op::Flush, 0, 0),
        Settle,
    ]);
    history.extend([
        Ask(0, Op::Read, 0, 8),
        Settle,
        Ask(0, Op::Write, 0, 8),
        Settle,
        Ask(0, Op::Flush, 0, 0),
        Settle,
    ]);
    let crashes = crash_everywhere(7, &history);
    assert!(crashes > 1000, "{crashes}");
}

/// A block that is evicted before its entry is stable would leave an older one behind, clean and wrong. `flush` stands
/// before the writes for which it is evicted.
fn overwrite_a_clean_block(flush: &[Step]) -> u64 {
    let mut history = vec![
        Ask(0, Op::Read, 0, 8),
        Settle,
        Ask(0, Op::Write, 8, 8),
        Ask(0, Op::Write, 16, 8),
        Settle,
        Ask(0, Op::Flush, 0, 0),
        Settle,
        Ask(0, Op::Write, 0, 8),
        Settle,
        Ask(0, Op::Read, 8, 8),
        Ask(0, Op::Read, 16, 8),
        Settle,
    ];
    history.extend_from_slice(flush);
    history.extend([Ask(0, Op::Write, 24, 8), Ask(1, Op::Write, 0, 8), Settle]);
    crash_everywhere(8, &history)
}

#[test]
fn a_clean_block_that_was_overwritten_never_outlives_what_took_its_place() {
    let crashes = overwrite_a_clean_block(&[]);
    assert!(crashes > 1000, "{crashes}");
}

#[test]
fn a_block_is_not_evicted_while_its_entry_is_being_written() {
    let crashes = overwrite_a_clean_block(&[Ask(0, Op::Flush, 0, 0)]);
    assert!(crashes > 1000, "{crashes}");
}

/// Kills at every event of the history, after which none, all, or one half of what was in flight has arrived; then power
/// fails at every event of what follows, in every way. Returns how many times power failed.
fn kill_everywhere(config: &Config, history: &[Step]) -> u64 {
    let mut failures = 0;
    for events in 0.. {
        let mut more = false;
        for fate in 0..4 {
            let killed = || {
                let (mut world, more) = run_in(World::with_memory(config.clone(), 8), history, events, false);
                let mut sector = 0;
                world.kill(fate == 3, || {
                    sector += 1;
                    [false, true, sector % 8 < 4, sector % 8 >= 4][fate]
                });
                (world, more)
            };
            let (mut world, goes_on) = killed();
            more = goes_on;
            world.verify();
            outlive(&mut world);
            if fate == 1 {
                failures += fail_power_everywhere(|| killed().0);
            }
        }
        if !more {
            println!("{failures} power failures after kills");
            return failures;
        }
    }
    failures
}

/// Power fails at every event until what a kill has left is on the device, and what it replaced is retired: two commits.
fn fail_power_everywhere(killed: impl Fn() -> World) -> u64 {
    let mut failures = 0;
    for events in 0..7 {
        let at = || {
            let mut world = killed();
            world.peek(0, 0);
            let reached = (0..events).all(|_| {
                world.in_flight() > 0 && {
                    world.complete(0);
                    true
                }
            });
            (world, reached)
        };
        let (world, reached) = at();
        if !reached {
            return failures;
        }
        let choices = choices(&world);
        let combinations: usize = choices.iter().map(Vec::len).product();
        for combination in 0..combinations {
            let (mut world, _) = at();
            crash_so(&mut world, &choices, combination);
            outlive(&mut world);
            failures += 1;
        }
    }
    failures
}

/// Overwritten before a commit has begun, while one is in progress, and after it; blocks are freed and used again.
#[test]
fn what_was_answered_is_there_after_a_kill_at_every_event() {
    let write = |disk, block: u64| [Ask(disk, Op::Write, block * 8, 8), Settle];
    let mut history = vec![Ask(1, Op::Read, 0, 8), Settle];
    history.extend([write(0, 0), write(0, 0), write(0, 1), write(0, 0)].concat());
    history.extend([Ask(0, Op::Flush, 0, 0), Ask(0, Op::Write, 0, 8), Ask(0, Op::Write, 0, 8), Settle]);
    history.extend([
        Ask(0, Op::Write, 3, 2),
        Settle,
        Ask(1, Op::Read, 8, 8),
        Ask(0, Op::Write, 0, 8),
        Settle,
    ]);
    history.extend([write(0, 2), write(1, 1), write(0, 3), write(0, 0)].concat());
    let failures = kill_everywhere(&config(8, false), &history);
    assert!(failures > 1000, "{failures}");
}

/// Past the cache, and past it again before and after a flush; then part of it through the cache; read into the cache, and out
/// of it again.
fn past_and_through() -> Vec<Step> {
    let flush = [Ask(0, Op::Flush, 0, 0), Settle];
    let past = [Ask(0, Op::Write, 0, 8), Settle];
    let read = [Ask(0, Op::Read, 0, 8), Settle];
    let other = |block: u64| [Ask(1, Op::Write, block * 8, 8), Settle];
    let mut history = [past, past, read, flush, read].concat();
    history.extend([other(0), other(1), other(2), flush, past, read, flush].concat());
    history.extend([Ask(0, Op::Write, 3, 2), Settle]);
    history.extend([flush, other(3), other(0), other(1), flush, past, flush].concat());
    history
}

#[test]
fn a_write_past_the_cache_is_safe_at_every_event() {
    let crashes = crash_everywhere_of(&config(8, true), &past_and_through());
    assert!(crashes > 1000, "{crashes}");
}

#[test]
fn what_was_written_past_the_cache_is_there_after_a_kill_at_every_event() {
    let failures = kill_everywhere(&config(8, true), &past_and_through());
    assert!(failures > 100, "{failures}");
}

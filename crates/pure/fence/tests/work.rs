//! What one event may do at most, counted in steps; the bound and its reasons stand at the top of `fence.rs`.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // other tests use more of it
use crate::steady;

use steady::{DEPTH, FREE_TARGET, MAX_BATCH, SCRATCH_BLOCKS, WAITING};
use virtbench_fence::{Backing, SchedulerConfig};

/// Blocks that a request of 8 KiB, aligned to blocks, touches.
const BLOCKS: u64 = 2;

/// What events of these tests do, with a third of room.
const USUAL: u64 = 1000;

/// The bound for the steady world of these tests.
fn most_steps() -> u64 {
    let waiting = WAITING * BLOCKS;
    let batch = u64::from((2 * MAX_BATCH).max(DEPTH[0] + DEPTH[1]));
    let (missing, scratch) = (u64::from(FREE_TARGET), u64::from(SCRATCH_BLOCKS));
    let changed = 63 + 3 * (waiting + batch + missing);
    5 * waiting + waiting * (2 + scratch / 2) + 2 * batch + 18 * missing + 32 + 6 * changed + 128
}

/// The greatest number of steps of one event, and of all together.
fn steps(scheduler: SchedulerConfig, cache_blocks: u32, idle_ns: u64) -> (u64, u64) {
    let (mut most, mut sum) = (0, 0);
    steady::run(steady::config(scheduler, cache_blocks), 60_000, idle_ns, |_, steps| {
        most = most.max(steps);
        sum += steps;
    });
    (most, sum)
}

#[test]
fn one_event_does_a_bounded_number_of_steps_in_a_cache_of_any_size() {
    for scheduler in [SchedulerConfig::Fifo, SchedulerConfig::Elevator, steady::slots()] {
        let (small, sum) = steps(scheduler.clone(), 1 << 10, 100);
        let (large, _) = steps(scheduler.clone(), 1 << 16, 100);
        let (idle, _) = steps(scheduler, 1 << 12, 3_600_000_000_000);
        println!("at most {small}, {large} and {idle} steps of {}", most_steps());
        assert!(sum > 60_000 && small > 63, "nothing is counted: {sum} steps, {small} at most");
        assert!(small.max(large).max(idle) <= most_steps(), "{small}, {large}, {idle}");
        // The bound adds up what never comes together; here far less is done, and a regression is seen sooner.
        assert!(small.max(large).max(idle) <= USUAL, "{small}, {large}, {idle}");
        // 64 times the cache, hours without an event: not even twice the work.
        assert!(large <= 2 * small && idle <= 2 * small, "{small}, {large}, {idle}");
    }
}

#[test]
fn writes_past_the_cache_do_a_bounded_number_of_steps_too() {
    let steps = |cache_blocks: u32| {
        let mut config = steady::config(SchedulerConfig::Fifo, cache_blocks);
        if let Backing::Cached(cache) = &mut config.backing {
            cache.bypass_bytes = vec![Some(0); 2];
        }
        let (mut most, mut sum) = (0, 0);
        steady::run(config, 60_000, 100, |_, steps| {
            most = most.max(steps);
            sum += steps;
        });
        assert!(sum > 60_000, "nothing is counted: {sum} steps");
        most
    };
    let (small, large) = (steps(1 << 10), steps(1 << 16));
    println!("at most {small} and {large} steps of {}", most_steps());
    assert!(small.max(large) <= USUAL && large <= 2 * small.max(63), "{small}, {large}");
}

//! A fence that has grown to its work takes no more memory: steady state, counted by an allocator.

#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::collections::VecDeque;

use virtbench_fence::cache::{CacheConfig, CachePartitions};
use virtbench_fence::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use virtbench_fence::slots::{SlotOwner, SlotsConfig};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, DeviceConfig, DiskConfig, DiskId, Effect, Fence, IoId, Op,
    Request, RequestId, SchedulerConfig, Time,
};
use virtbench_units::Random;

struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory came from `alloc` above with the same layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn config(scheduler: SchedulerConfig) -> Config {
    let disk = |n: u8| DiskConfig { uuid: [n; 16], offset_bytes: u64::from(n) << 30, size_bytes: 1 << 30 };
    let cache = CacheConfig {
        uuid: [1; 16],
        partitions: CachePartitions::Shared(4096),
        free_target: 256,
        low_watermark: 64,
        scratch_blocks: 32,
    };
    Config {
        disks: (0..2).map(disk).collect(),
        slow: DeviceConfig { size_bytes: 2 << 30, depth: 4 },
        fast: DeviceConfig { size_bytes: 1 << 30, depth: 32 },
        backing: Backing::Cached(cache),
        scheduler,
        max_request_bytes: 128 << 10,
    }
}

/// Closed loops of 32 requests; the number of allocations while the last `measured` are answered.
fn allocations(scheduler: SchedulerConfig, warm_up: u64, measured: u64) -> usize {
    let mut fence = Fence::new(config(scheduler)).unwrap();
    let mut random = Random::new(1);
    let mut devices: VecDeque<IoId> = VecDeque::with_capacity(4096);
    let (mut waiting, mut answered, mut now_ns, mut before) = (0, 0, 0, 0);
    while answered < warm_up + measured {
        now_ns += 100;
        let now = Time::from_ns(now_ns);
        if waiting < 32 {
            waiting += 1;
            let op = match random.below(100) {
                0 => Op::Flush,
                1..40 => Op::Write,
                _ => Op::Read,
            };
            let block = random.below(8192);
            let len_bytes = if block.is_multiple_of(8) { 1024 } else { 8192 };
            let (id, buffer) = (RequestId(0), BufferId(0));
            let disk = DiskId(u16::from(block.is_multiple_of(2)));
            fence.submit(now, Request { id, disk, op, offset_bytes: block * 4096, len_bytes, buffer });
        } else if let Some(io) = devices.pop_front() {
            fence.on_device(now, Completion { io, result: Ok(()), data_crc: 0 }).unwrap();
        } else {
            now_ns = fence.next_deadline().unwrap().ns().max(now_ns);
            fence.on_timer(Time::from_ns(now_ns));
        }
        while let Some(effect) = fence.poll_effect() {
            match effect {
                Effect::Dispatch(io) => devices.push_back(io.id),
                Effect::Copy { .. } => {}
                Effect::Complete { result, .. } => {
                    result.unwrap();
                    waiting -= 1;
                    answered += 1;
                    if answered == warm_up {
                        before = CALLS.get();
                    }
                }
            }
        }
    }
    CALLS.get() - before
}

#[test]
fn nothing_is_allocated_once_a_fence_has_grown_to_its_work() {
    let slow = SlowPredictor::new(vec![Knot { distance_bytes: 0, access_ns: 300.0 }], 100);
    let fast = FastPredictor { base_ns: 50.0, per_io_ns: 60.0 };
    let slots = SlotsConfig {
        owners: vec![SlotOwner::Disk(DiskId(0)), SlotOwner::Disk(DiskId(1))],
        slot_ns: 20_000,
        predict: Predictors { slow, fast },
        max_batch: 32,
    };
    for scheduler in [SchedulerConfig::Fifo, SchedulerConfig::Slots(slots)] {
        let calls = allocations(scheduler.clone(), 200_000, 50_000);
        assert_eq!(calls, 0, "{scheduler:?}");
    }
}

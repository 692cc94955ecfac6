//! Closed loops of 32 requests over devices that serve in the order of arrival.

use std::collections::VecDeque;

use virtbench_fence::cache::{CacheConfig, CachePartitions};
use virtbench_fence::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use virtbench_fence::slots::{SlotOwner, SlotsConfig};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, DeviceConfig, DiskConfig, DiskId, Effect, Fence, IoId, Op,
    Request, RequestId, SchedulerConfig, Time,
};
use virtbench_units::Random;

pub const WAITING: u64 = 32;
pub const FREE_TARGET: u32 = 256;
pub const SCRATCH_BLOCKS: u32 = 32;
pub const MAX_BATCH: u32 = 32;
pub const DEPTH: [u32; 2] = [4, 32];

pub fn config(scheduler: SchedulerConfig, cache_blocks: u32) -> Config {
    let disk = |n: u8| DiskConfig { uuid: [n; 16], offset_bytes: u64::from(n) << 30, size_bytes: 1 << 30 };
    let cache = CacheConfig {
        uuid: [1; 16],
        partitions: CachePartitions::Shared(cache_blocks),
        free_target: FREE_TARGET,
        low_watermark: 64,
        scratch_blocks: SCRATCH_BLOCKS,
        bypass_bytes: Vec::new(),
    };
    Config {
        disks: (0..2).map(disk).collect(),
        slow: DeviceConfig { size_bytes: 2 << 30, depth: DEPTH[0] },
        fast: DeviceConfig { size_bytes: 1 << 30, depth: DEPTH[1] },
        backing: Backing::Cached(cache),
        scheduler,
        max_request_bytes: 128 << 10,
    }
}

pub fn slots() -> SchedulerConfig {
    let slow = SlowPredictor::new(vec![Knot { distance_bytes: 0, access_ns: 300.0 }], 100);
    let fast = FastPredictor { base_ns: 50.0, per_io_ns: 60.0 };
    SchedulerConfig::Slots(SlotsConfig {
        owners: vec![SlotOwner::Disk(DiskId(0)), SlotOwner::Disk(DiskId(1))],
        slot_ns: 20_000,
        predict: Predictors { slow, fast },
        max_batch: MAX_BATCH,
    })
}

/// Until `requests` are answered, over twice as many blocks as are cached; every so often nothing happens for
/// `idle_ns`. `event` gets, for each event, how many are answered by then, and the steps that the fence took in it.
pub fn run(config: Config, requests: u64, idle_ns: u64, mut event: impl FnMut(u64, u64)) {
    let Backing::Cached(cache) = &config.backing else { return };
    let working_set = 2 * u64::from(cache.partitions.blocks()[0]);
    let mut fence = Fence::new(config).unwrap();
    let (mut random, mut idle) = (Random::new(1), Random::new(2));
    let mut devices: VecDeque<IoId> = VecDeque::with_capacity(4096);
    let (mut waiting, mut answered, mut now_ns) = (0, 0, 0);
    while answered < requests {
        now_ns += if idle.below(1000) == 0 { idle_ns } else { 100 };
        let now = Time::from_ns(now_ns);
        let before = fence.steps();
        if waiting < WAITING {
            waiting += 1;
            let op = match random.below(100) {
                0 => Op::Flush,
                1..40 => Op::Write,
                _ => Op::Read,
            };
            let block = random.below(working_set);
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
                }
            }
        }
        event(answered, fence.steps() - before);
    }
}

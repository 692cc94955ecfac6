//! What one disk's load does to another's requests, in virtual time: devices serve one I/O after the other, each in the
//! time that the predictors say.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, clippy::expect_used)]

use std::collections::{BTreeMap, VecDeque};

use virtbench_fence::cache::{CacheConfig, CachePartitions, Layout};
use virtbench_fence::peers::{Cap, FairConfig, Shares};
use virtbench_fence::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use virtbench_fence::slots::{SlotOwner, SlotsConfig};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, Device, DeviceConfig, DeviceIo, DiskConfig, DiskId, Effect, Fence,
    Op, Request, RequestId, SchedulerConfig, Time,
};
use virtbench_units::Random;

const QUIET: u16 = 0;
const BUSY: u16 = 1;
const DISK_BLOCKS: u64 = 64;
/// Of a slow and of a fast I/O.
const SERVICE_NS: [u64; 2] = [20, 2];
/// With it every access ends at or before the end of its slot, and none ends early for want of room.
const EVEN_NS: [u64; 2] = [1, 1];
const REQUESTS: u64 = 200;

fn config(scheduler: SchedulerConfig) -> Config {
    let blocks = vec![24, 24];
    let fast_bytes = Layout::new(&blocks).end_bytes;
    let cache = CacheConfig {
        uuid: [9; 16],
        partitions: CachePartitions::PerDisk(blocks),
        free_target: 6,
        low_watermark: 1,
        scratch_blocks: 4,
        bypass_bytes: Vec::new(),
    };
    let disk = |n: u16| DiskConfig {
        uuid: [n as u8 + 1; 16],
        offset_bytes: u64::from(n) * DISK_BLOCKS * 4096,
        size_bytes: DISK_BLOCKS * 4096,
    };
    Config {
        disks: vec![disk(0), disk(1)],
        slow: DeviceConfig { size_bytes: 2 * DISK_BLOCKS * 4096, depth: 2 },
        fast: DeviceConfig { size_bytes: fast_bytes, depth: 4 },
        backing: Backing::Cached(cache),
        scheduler,
        max_request_bytes: 8192,
    }
}

fn slots(service_ns: [u64; 2]) -> SchedulerConfig {
    let [slow_ns, fast_ns] = service_ns;
    let slow = SlowPredictor::new(vec![Knot { distance_bytes: 0, access_ns: slow_ns as f64 }], slow_ns);
    let fast = FastPredictor { base_ns: 0.0, per_io_ns: fast_ns as f64 };
    SchedulerConfig::Slots(SlotsConfig {
        owners: vec![SlotOwner::Disk(DiskId(QUIET)), SlotOwner::Disk(DiskId(BUSY))],
        slot_ns: 200,
        predict: Predictors { slow, fast },
        max_batch: 8,
    })
}

fn all() -> Vec<(&'static str, SchedulerConfig)> {
    let cap = Cap { iops: Some(40_000_000), bytes_per_s: None, burst_ns: 0 };
    let shares = Shares { reservation_iops: 10_000_000, limit_iops: 40_000_000, weight: 1 };
    let fair = FairConfig { weights: vec![1, 1], budget_sectors: 64, idle_ns: 30 };
    vec![
        ("FIFO", SchedulerConfig::Fifo),
        ("elevator", SchedulerConfig::Elevator),
        ("token bucket", SchedulerConfig::TokenBucket(vec![cap, cap])),
        ("mClock", SchedulerConfig::MClock(vec![shares, shares])),
        ("fair queueing", SchedulerConfig::FairQueue(fair)),
        ("slots", slots(SERVICE_NS)),
    ]
}

struct Run {
    fence: Fence,
    now: u64,
    service_ns: [u64; 2],
    /// When each device's work is done, and that work.
    free_at: [u64; 2],
    devices: [VecDeque<(u64, DeviceIo)>; 2],
    /// Completions of devices so far, and when each request of the quiet disk was submitted by that count.
    completions: u64,
    submitted: BTreeMap<u64, u64>,
    /// Of the quiet disk: requests and times in the order of their answers, and the longest wait in completions.
    answers: Vec<(u64, u64)>,
    longest: u64,
    busy_waiting: u32,
    random: Random,
}

impl Run {
    /// The quiet disk asks at times that do not depend on anything; the other has always `depth` requests outstanding.
    fn new(scheduler: SchedulerConfig, service_ns: [u64; 2], depth: u32, seed: u64) -> Self {
        let mut run = Self {
            fence: Fence::new(config(scheduler)).unwrap(),
            now: 0,
            service_ns,
            free_at: [0; 2],
            devices: [VecDeque::new(), VecDeque::new()],
            completions: 0,
            submitted: BTreeMap::new(),
            answers: Vec::new(),
            longest: 0,
            busy_waiting: 0,
            random: Random::new(!seed),
        };
        let mut script = Random::new(seed);
        let mut asked = 0;
        let mut ask_at = 0;
        while run.answers.len() < REQUESTS as usize {
            while run.busy_waiting < depth {
                run.busy_waiting += 1;
                let request = request(&mut run.random, BUSY, u64::MAX);
                run.fence.submit(Time::from_ns(run.now), request);
                run.carry_out();
            }
            let done = [0, 1].map(|device: usize| run.devices[device].front().map_or(u64::MAX, |io| io.0));
            let timer = run.fence.next_deadline().map_or(u64::MAX, Time::ns);
            let ask = if asked < REQUESTS { ask_at } else { u64::MAX };
            let next = done[0].min(done[1]).min(timer).min(ask);
            assert_ne!(next, u64::MAX, "requests wait and nothing will wake them");
            run.now = run.now.max(next);
            let now = Time::from_ns(run.now);
            if next == ask {
                run.submitted.insert(asked, run.completions);
                run.fence.submit(now, request(&mut script, QUIET, asked));
                asked += 1;
                ask_at += script.below(120);
            } else if let Some(device) = done.iter().position(|&at| at == next) {
                let (_, io) = run.devices[device].pop_front().unwrap();
                run.completions += 1;
                run.fence.on_device(now, Completion { io: io.id, result: Ok(()), data_crc: 0 }).unwrap();
            } else {
                run.fence.on_timer(now);
            }
            run.carry_out();
        }
        run
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.fence.poll_effect() {
            match effect {
                Effect::Dispatch(io) => {
                    let device = io.device.index();
                    if io.device == Device::Fast {
                        check_partition(&io);
                    }
                    self.free_at[device] = self.free_at[device].max(self.now) + self.service_ns[device];
                    self.devices[device].push_back((self.free_at[device], io));
                }
                Effect::Copy { .. } => {}
                Effect::Complete { request, result } => {
                    result.unwrap();
                    match self.submitted.remove(&request.0) {
                        Some(then) => {
                            self.answers.push((request.0, self.now));
                            self.longest = self.longest.max(self.completions - then);
                        }
                        None => self.busy_waiting -= 1,
                    }
                }
            }
        }
    }
}

/// A disk's I/Os stay in its partition of the cache, log and data.
fn check_partition(io: &DeviceIo) {
    let layout = Layout::new(&[24, 24]);
    let part = &layout.partitions[io.disk.index()];
    let end = part.data_offset_bytes + u64::from(part.blocks) * 4096;
    let inside = io.offset_bytes >= part.log_offset_bytes && io.offset_bytes + u64::from(io.len_bytes) <= end;
    assert!(inside || io.len_bytes == 0, "{io:?}");
}

fn request(random: &mut Random, disk: u16, id: u64) -> Request {
    let op = match random.below(12) {
        0 => Op::Flush,
        1..6 => Op::Write,
        _ => Op::Read,
    };
    let (id, buffer) = (RequestId(id), BufferId(id));
    let (offset_bytes, len_bytes) = (random.below(DISK_BLOCKS) * 4096, 4096);
    Request { id, disk: DiskId(disk), op, offset_bytes, len_bytes, buffer }
}

/// Where a slot ends early for want of room the next begins early: there answers move by as much, and may change places.
#[test]
fn in_slots_answers_come_at_the_same_times_whatever_the_neighbour_does() {
    for seed in 0..200 {
        let run = |depth| Run::new(slots(EVEN_NS), EVEN_NS, depth, seed).answers;
        let alone = run(0);
        for depth in [1, 16] {
            assert_eq!(run(depth), alone, "seed {seed}, depth {depth}");
        }
    }
}

/// Of both devices together. A rotation, a sweep or a round of budgets takes so many at most here.
const MOST_COMPLETIONS: u64 = 500;

#[test]
fn no_scheduler_starves_a_disk_beside_one_that_never_rests() {
    for (name, scheduler) in all() {
        let longest =
            (0..100).map(|seed| Run::new(scheduler.clone(), SERVICE_NS, 16, seed).longest).max().unwrap();
        println!("{name}: a request waits for {longest} completions at most");
        assert!(longest <= MOST_COMPLETIONS, "{name}: {longest}");
    }
}

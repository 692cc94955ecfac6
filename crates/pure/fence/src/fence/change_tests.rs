#![allow(clippy::cast_possible_truncation)] // small random numbers

use std::collections::{BTreeMap, VecDeque};

use virtbench_units::Random;

use super::*;
use crate::cache::{CacheConfig, CachePartitions};
use crate::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use crate::slots::{SlotOwner, SlotsConfig};
use crate::{
    Backing, BufferId, Completion, Config, Device, DeviceConfig, DeviceIo, DiskConfig, Effect, IoError, Op,
    Request, RequestId,
};

const MIB: u64 = 1 << 20;
const DISKS: u16 = 3;

/// Disks of 1 MiB each, with 3 MiB of room behind each.
fn config(backing: Backing, scheduler: SchedulerConfig) -> Config {
    let disk = |n: u8| DiskConfig { uuid: [n; 16], offset_bytes: u64::from(n) * 4 * MIB, size_bytes: MIB };
    Config {
        disks: (0..3).map(disk).collect(),
        slow: DeviceConfig { size_bytes: 12 * MIB, depth: 4 },
        fast: DeviceConfig { size_bytes: 12 * MIB, depth: 4 },
        backing,
        scheduler,
        max_request_bytes: 64 << 10,
    }
}

fn cached() -> Backing {
    Backing::Cached(CacheConfig {
        uuid: [9; 16],
        partitions: CachePartitions::PerDisk(vec![64; 3]),
        free_target: 24,
        low_watermark: 4,
        scratch_blocks: 8,
        bypass_bytes: Vec::new(),
    })
}

fn slots(owners: &[u16], slot_ns: u64) -> SchedulerConfig {
    let slow = SlowPredictor::new(vec![Knot { distance_bytes: 0, access_ns: 1e5 }], 0);
    SchedulerConfig::Slots(SlotsConfig {
        owners: owners.iter().map(|&disk| SlotOwner::Disk(DiskId(disk))).collect(),
        slot_ns,
        predict: Predictors { slow, fast: FastPredictor { base_ns: 0.0, per_io_ns: 1e4 } },
        max_batch: 8,
    })
}

/// Carries out effects later, and checks where they go and that each request is answered once.
struct World {
    fence: Fence,
    now: u64,
    asked: BTreeMap<u64, bool>,
    under_way: VecDeque<DeviceIo>,
    /// Of each disk, as it is told.
    sizes: [u64; DISKS as usize],
    refused: usize,
    /// How far each disk's I/Os on the slow device have reached.
    reached: [u64; DISKS as usize],
}

impl World {
    fn new(config: Config) -> Self {
        let fence = Fence::new(config).unwrap();
        let (asked, under_way) = (BTreeMap::new(), VecDeque::new());
        Self { fence, now: 0, asked, under_way, sizes: [MIB; 3], refused: 0, reached: [0; 3] }
    }

    fn time(&mut self) -> Time {
        self.now += 20_000;
        Time::from_ns(self.now)
    }

    fn ask(&mut self, random: &mut Random) {
        let disk = random.below(u64::from(DISKS)) as u16;
        // Behind its end too: that is refused.
        let offset_bytes = random.below(4 * MIB / 512) * 512;
        let len_bytes = 512 * (1 + random.below(64)) as u32;
        let op = [Op::Read, Op::Write, Op::Write, Op::Flush][random.below(4) as usize];
        let id = RequestId(self.asked.len() as u64);
        self.asked.insert(id.0, false);
        let now = self.time();
        let end = offset_bytes + u64::from(len_bytes);
        let before = self.refused;
        let buffer = BufferId(id.0);
        self.fence.submit(now, Request { id, disk: DiskId(disk), op, offset_bytes, len_bytes, buffer });
        self.effects();
        let past_end = op != Op::Flush && end > self.sizes[usize::from(disk)];
        assert_eq!(self.refused > before, past_end, "{op:?} up to {end}");
    }

    fn effects(&mut self) {
        while let Some(effect) = self.fence.poll_effect() {
            match effect {
                Effect::Dispatch(io) => {
                    let disk = io.disk.index();
                    if io.device == Device::Slow && io.len_bytes > 0 {
                        let begins = disk as u64 * 4 * MIB;
                        let end = io.offset_bytes + u64::from(io.len_bytes);
                        assert!(io.offset_bytes >= begins && end <= begins + self.sizes[disk], "{io:?}");
                        self.reached[disk] = self.reached[disk].max(end - begins);
                    }
                    self.under_way.push_back(io);
                }
                Effect::Complete { request, result } => {
                    let answered = self.asked.get_mut(&request.0).unwrap();
                    assert!(!std::mem::replace(answered, true), "{request:?} was answered twice");
                    self.refused += usize::from(result == Err(IoError::OutOfRange));
                }
                Effect::Copy { .. } => {}
            }
        }
    }

    fn finish(&mut self, random: &mut Random) {
        let now = self.time();
        if self.under_way.is_empty() {
            // Nobody's turn: time passes.
            let next = self.fence.next_deadline().map_or(0, Time::ns);
            self.now = self.now.max(next);
            let now = Time::from_ns(self.now);
            self.fence.on_timer(now);
        } else {
            let index = random.below(self.under_way.len() as u64) as usize;
            let io = self.under_way.remove(index).unwrap();
            self.fence.on_device(now, Completion { io: io.id, result: Ok(()), data_crc: 0 }).unwrap();
        }
        self.effects();
    }

    fn grow(&mut self, random: &mut Random) {
        let disk = random.below(u64::from(DISKS)) as u16;
        let size_bytes = random.below(6 * MIB / 4096) * 4096;
        let was = self.sizes[usize::from(disk)];
        let changed = self.fence.grow_disk(DiskId(disk), size_bytes);
        if size_bytes < was {
            assert_eq!(changed, Err(ChangeError::Shrinks { disk: usize::from(disk), was }));
        } else if size_bytes > 4 * MIB {
            assert!(matches!(changed, Err(ChangeError::Config(_))), "{changed:?}");
        } else {
            assert_eq!(changed, Ok(()));
            self.sizes[usize::from(disk)] = size_bytes;
        }
    }

    /// Until everything is answered.
    fn settle(&mut self, random: &mut Random) {
        for _ in 0..200_000 {
            if self.fence.outstanding() == 0 {
                assert!(self.asked.values().all(|answered| *answered));
                return;
            }
            self.finish(random);
        }
        panic!("{} requests are not answered", self.fence.outstanding());
    }
}

fn backings() -> [Backing; 3] {
    [Backing::Slow, Backing::Fast, cached()]
}

#[test]
fn a_disk_that_grows_at_work_never_reaches_beyond_its_partition() {
    let mut used = 0;
    for (seed, backing) in (0..).zip(backings().into_iter().cycle()).take(60) {
        let mut random = Random::new(seed);
        let mut world = World::new(config(backing, SchedulerConfig::Fifo));
        for _ in 0..400 {
            match random.below(40) {
                0 => world.grow(&mut random),
                1..=20 => world.ask(&mut random),
                _ => world.finish(&mut random),
            }
        }
        world.settle(&mut random);
        used += world.reached.iter().filter(|&&reached| reached > MIB).count();
    }
    assert!(used > 20, "new room was used {used} times");
}

#[test]
fn new_room_can_be_used_at_once_and_is_refused_before() {
    for backing in [Backing::Slow, cached()] {
        let mut random = Random::new(1);
        let mut world = World::new(config(backing, SchedulerConfig::Fifo));
        let end = |id| Request {
            id: RequestId(id),
            disk: DiskId(1),
            op: Op::Write,
            offset_bytes: 4 * MIB - 4096,
            len_bytes: 4096,
            buffer: BufferId(id),
        };
        world.asked.extend([(0, false), (1, false), (2, false)]);
        world.fence.submit(Time::ZERO, end(0));
        world.effects();
        assert_eq!(world.refused, 1);
        world.fence.grow_disk(DiskId(1), 4 * MIB).unwrap();
        world.sizes[1] = 4 * MIB;
        world.fence.submit(Time::ZERO, end(1));
        world.fence.submit(Time::ZERO, Request { op: Op::Flush, ..end(2) });
        world.effects();
        world.settle(&mut random);
        assert_eq!(world.refused, 1);
        assert!(world.fence.grow_disk(DiskId(1), 4 * MIB + 4096).is_err(), "a neighbour's");
        assert_eq!(world.fence.grow_disk(DiskId(3), MIB), Err(ChangeError::NoDisk(3)));
    }
}

#[test]
fn slots_given_anew_under_load_lose_no_request() {
    for (seed, backing) in (0..).zip(backings().into_iter().cycle()).take(30) {
        let mut random = Random::new(seed);
        let mut world = World::new(config(backing, slots(&[0, 1, 2], 1_000_000)));
        let others: [&[u16]; 4] = [&[0, 1, 2], &[0, 0, 1, 2, 1], &[2, 1, 0], &[1, 2, 0, 0, 0, 0, 0]];
        for _ in 0..400 {
            match random.below(40) {
                0 => {
                    let owners = others[random.below(4) as usize];
                    let slot_ns = 500_000 + random.below(1_000_000);
                    let now = world.time();
                    world.fence.reschedule(now, &slots(owners, slot_ns)).unwrap();
                    world.effects();
                }
                1..=20 => world.ask(&mut random),
                _ => world.finish(&mut random),
            }
        }
        world.settle(&mut random);
    }
}

#[test]
fn what_does_not_fit_leaves_the_scheduler_as_it_is() {
    let mut fence = Fence::new(config(Backing::Slow, slots(&[0, 1, 2], 1_000_000))).unwrap();
    let without = slots(&[0, 1], 1_000_000);
    let refused = fence.reschedule(Time::ZERO, &without).unwrap_err();
    assert!(matches!(refused, ChangeError::Config(ConfigError::DiskWithoutSlot { disk: 2, .. })));
    assert_eq!(fence.reschedule(Time::ZERO, &SchedulerConfig::Fifo), Err(ChangeError::Scheduler));
    assert_eq!(fence.reschedule(Time::ZERO, &slots(&[2, 0, 1], 1_000_000)), Ok(()));
}

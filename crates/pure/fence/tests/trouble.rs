//! Devices that fail for a while: what was answered stays, and requests go on once the device works again.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use virtbench_fence::cache::{CacheConfig, CachePartitions, Image, Layout, MemoryLog, format};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, Device, DeviceConfig, DeviceIo, DeviceOp, DiskConfig, DiskId,
    Effect, Fence, IoError, Op, Request, RequestId, SchedulerConfig, Time,
};

const BLOCKS: u32 = 60;
const SECOND: u64 = 1_000_000_000;

fn config() -> Config {
    Config {
        disks: vec![DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes: 1 << 20 }],
        slow: DeviceConfig { size_bytes: 1 << 20, depth: 4 },
        fast: DeviceConfig { size_bytes: Layout::new(&[BLOCKS]).end_bytes, depth: 4 },
        backing: Backing::Cached(CacheConfig {
            uuid: [7; 16],
            partitions: CachePartitions::Shared(BLOCKS),
            free_target: 20,
            low_watermark: 2,
            scratch_blocks: 8,
            bypass_bytes: Vec::new(),
        }),
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 8192,
    }
}

/// Devices of which some I/Os fail as long as it is said, and the blocks that they hold.
struct World {
    fence: Fence,
    now: u64,
    fails: fn(&DeviceIo) -> bool,
    answers: BTreeMap<u64, Result<(), IoError>>,
    /// Blocks that were written to the slow device or discarded there.
    written: Vec<u64>,
    discarded: Vec<u64>,
    next: u64,
}

impl World {
    fn new() -> Self {
        Self::over(Fence::new(config()).unwrap())
    }

    fn over(fence: Fence) -> Self {
        let (answers, written, discarded) = (BTreeMap::new(), Vec::new(), Vec::new());
        Self { fence, now: 0, fails: |_| false, answers, written, discarded, next: 0 }
    }

    fn ask(&mut self, op: Op, block: u64, blocks: u64) -> u64 {
        self.ask_disk(0, op, block, blocks)
    }

    fn ask_disk(&mut self, disk: u16, op: Op, block: u64, blocks: u64) -> u64 {
        self.next += 1;
        let (id, buffer) = (RequestId(self.next), BufferId(self.next));
        let (offset_bytes, len_bytes) = (block * 4096, blocks as u32 * 4096);
        let request = Request { id, disk: DiskId(disk), op, offset_bytes, len_bytes, buffer };
        self.fence.submit(Time::from_ns(self.now), request);
        self.carry_out();
        self.next
    }

    fn carry_out(&mut self) {
        while let Some(effect) = self.fence.poll_effect() {
            match effect {
                Effect::Dispatch(io) => {
                    let result = if (self.fails)(&io) { Err(IoError::Device(5)) } else { Ok(()) };
                    let blocks = io.offset_bytes / 4096..(io.offset_bytes + u64::from(io.len_bytes)) / 4096;
                    match (io.device, io.op, result) {
                        (Device::Slow, DeviceOp::Write, Ok(())) => self.written.extend(blocks),
                        (Device::Slow, DeviceOp::Discard, Ok(())) => self.discarded.extend(blocks),
                        _ => {}
                    }
                    let done = Completion { io: io.id, result, data_crc: 0 };
                    self.fence.on_device(Time::from_ns(self.now), done).unwrap();
                }
                Effect::Complete { request, result } => drop(self.answers.insert(request.0, result)),
                Effect::Copy { .. } => {}
            }
        }
    }

    /// Time passes, with all deadlines in it.
    fn pass(&mut self, ns: u64) {
        let until = self.now + ns;
        while let Some(deadline) = self.fence.next_deadline().filter(|deadline| deadline.ns() <= until) {
            self.now = self.now.max(deadline.ns());
            self.fence.on_timer(Time::from_ns(self.now));
            self.carry_out();
        }
        self.now = until;
    }

    fn answer(&self, id: u64) -> Option<Result<(), IoError>> {
        self.answers.get(&id).copied()
    }

    /// Writes blocks until one is not answered, and gives its number and that of those answered.
    fn fill(&mut self) -> (u64, u64) {
        for block in 0..200 {
            let id = self.ask(Op::Write, block, 1);
            self.ask(Op::Flush, 0, 0);
            match self.answer(id) {
                Some(result) => assert_eq!(result, Ok(())),
                None => return (id, block),
            }
        }
        panic!("the cache takes everything");
    }

    fn counts(&self) -> virtbench_fence::cache::CacheCounts {
        self.fence.cache_counts().next().unwrap()
    }
}

/// Whether an I/O fails.
type Fails = fn(&DeviceIo) -> bool;

const FAILURES: [(&str, Fails); 3] = [
    ("writes", |io| io.device == Device::Slow && io.op == DeviceOp::Write),
    ("syncs", |io| io.device == Device::Slow && io.op == DeviceOp::Flush),
    ("reads of the cache", |io| io.device == Device::Fast && io.op == DeviceOp::Read),
];

#[test]
fn a_slow_device_that_fails_is_tried_again_and_writes_go_on() {
    for (name, fails) in FAILURES {
        let mut world = World::new();
        world.fails = fails;
        let (waits, answered) = world.fill();
        assert!(answered > 30, "{name}: the cache has room for more than {answered}");
        assert!(world.counts().failing && !world.counts().read_only, "{name}: {:?}", world.counts());
        world.pass(5 * SECOND);
        assert_eq!(world.answer(waits), None, "{name}: it waits for the device");
        world.fails = |_| false;
        world.pass(3 * SECOND);
        assert_eq!(world.answer(waits), Some(Ok(())), "{name}");
        assert!(!world.counts().failing && world.counts().errors > 0, "{name}: {:?}", world.counts());
        let again = world.ask(Op::Write, 199, 1);
        assert_eq!(world.answer(again), Some(Ok(())), "{name}");
    }
}

#[test]
fn a_slow_device_that_fails_for_long_refuses_writes_without_room_until_it_works() {
    let mut world = World::new();
    world.fails = FAILURES[0].1;
    let (waits, answered) = world.fill();
    let read = world.ask(Op::Read, 150, 1);
    assert_eq!(world.answer(read), Some(Ok(())), "a read needs no room");
    world.pass(15 * SECOND);
    assert_eq!(world.answer(waits), Some(Err(IoError::Device(5))));
    let refused = world.ask(Op::Write, 120, 1);
    assert_eq!(world.answer(refused), Some(Err(IoError::Device(5))));
    assert!(world.written.is_empty());
    world.fails = |_| false;
    world.pass(3 * SECOND);
    let again = world.ask(Op::Write, 120, 1);
    assert_eq!(world.answer(again), Some(Ok(())));
    // Nothing that was answered is forgotten: all of it is in the cache or on the slow device.
    let kept = |block: u64| world.written.contains(&block);
    let gone = (0..answered).filter(|block| !kept(*block)).count();
    assert!(gone <= world.counts().used as usize, "{gone} blocks, {:?}", world.counts());
}

#[test]
fn a_log_that_cannot_be_written_is_written_again() {
    let mut world = World::new();
    world.ask(Op::Write, 0, 1);
    world.fails = |io| {
        io.device == Device::Fast
            && io.op == DeviceOp::Write
            && io.len_bytes == 4096
            && io.offset_bytes < 16384
    };
    let flush = world.ask(Op::Flush, 0, 0);
    assert_eq!(world.answer(flush), None);
    world.pass(SECOND);
    assert_eq!((world.answer(flush), world.counts().failing), (None, true));
    world.fails = |_| false;
    world.pass(3 * SECOND);
    assert_eq!((world.answer(flush), world.counts().failing), (Some(Ok(())), false));
    // For longer than requests wait: refused, and taken again.
    world.ask(Op::Write, 1, 1);
    world.fails = |io| io.device == Device::Fast && io.op == DeviceOp::Write && io.offset_bytes < 16384;
    let flush = world.ask(Op::Flush, 0, 0);
    world.pass(20 * SECOND);
    assert_eq!(world.answer(flush), Some(Err(IoError::Device(5))));
    assert!(world.counts().read_only);
    world.fails = |_| false;
    world.pass(3 * SECOND);
    let flush = world.ask(Op::Flush, 0, 0);
    assert_eq!((world.answer(flush), world.counts().read_only), (Some(Ok(())), false));
}

#[test]
fn a_sync_that_fails_does_not_count_what_was_written_before_the_next() {
    let mut world = World::new();
    world.fails = FAILURES[1].1;
    let (_, answered) = world.fill();
    world.pass(4 * SECOND);
    assert!(!world.written.is_empty());
    world.written.clear();
    world.fails = |_| false;
    world.pass(5 * SECOND);
    // What has left the cache was written after the last sync that failed.
    let again: BTreeSet<u64> = world.written.iter().copied().collect();
    let left = answered + 1 - u64::from(world.counts().used);
    assert!(left > 0 && left <= again.len() as u64, "{left} blocks left, {again:?} were written");
}

/// Two partitions over one slow device: a failure of its sync is told to one of them only.
#[test]
fn a_sync_that_fails_counts_for_every_disk_that_has_written() {
    let mut config = config();
    config.disks.push(DiskConfig { uuid: [2; 16], offset_bytes: 1 << 20, size_bytes: 1 << 20 });
    config.slow.size_bytes = 2 << 20;
    config.fast.size_bytes = Layout::new(&[BLOCKS; 2]).end_bytes;
    if let Backing::Cached(cache) = &mut config.backing {
        cache.partitions = CachePartitions::PerDisk(vec![BLOCKS; 2]);
    }
    let mut fence = Fence::new(config).unwrap();
    let (mut held, mut writes, mut next, mut lost, mut failed) = (Vec::new(), BTreeMap::new(), 0, 0, false);
    let mut now = 0;
    let mut step = |fence: &mut Fence, request: Option<(u16, Op, u64)>| {
        now += 1;
        if let Some((disk, op, block)) = request {
            next += 1;
            let len_bytes = if op == Op::Flush { 0 } else { 4096 };
            let (id, buffer) = (RequestId(next), BufferId(next));
            let request =
                Request { id, disk: DiskId(disk), op, offset_bytes: block * 4096, len_bytes, buffer };
            fence.submit(Time::from_ns(now), request);
        }
        while let Some(effect) = fence.poll_effect() {
            let Effect::Dispatch(io) = effect else { continue };
            let place = (io.disk, io.offset_bytes);
            match (io.device, io.op) {
                // Both have written and sync at the same time; the first hears of it.
                (Device::Slow, DeviceOp::Flush) if !failed && held.len() < 2 => {
                    held.push(io);
                    if held.len() < 2 {
                        continue;
                    }
                    failed = true;
                    lost = writes.len();
                    writes.clear();
                    for (result, io) in [Err(IoError::Device(5)), Ok(())].into_iter().zip(held.drain(..)) {
                        let done = Completion { io: io.id, result, data_crc: 0 };
                        fence.on_device(Time::from_ns(now), done).unwrap();
                    }
                    continue;
                }
                (Device::Slow, DeviceOp::Write) => drop(writes.insert(place, ())),
                _ => {}
            }
            fence
                .on_device(Time::from_ns(now), Completion { io: io.id, result: Ok(()), data_crc: 0 })
                .unwrap();
        }
        (lost, writes.len())
    };
    for block in 0..55 {
        for disk in 0..2 {
            step(&mut fence, Some((disk, Op::Write, block)));
            step(&mut fence, Some((disk, Op::Flush, 0)));
        }
    }
    let mut end = (0, 0);
    for _ in 0..100 {
        if let Some(deadline) = fence.next_deadline() {
            fence.on_timer(deadline);
        }
        end = step(&mut fence, None);
    }
    let (lost, written) = end;
    assert!(lost > 1, "both disks had written {lost} blocks when the sync failed");
    let used: u32 = fence.cache_counts().map(|counts| counts.used + counts.writing).sum();
    assert!(110 - used as usize <= written, "{used} of 110 blocks are cached, {written} were written again");
}

#[test]
fn a_trim_reaches_the_slow_device_and_what_is_dirty_is_not_written_back() {
    let mut world = World::new();
    for block in 0..10 {
        world.ask(Op::Write, block, 1);
    }
    world.ask(Op::Flush, 0, 0);
    // Of one that is not stable yet nothing is known.
    world.ask(Op::Write, 9, 1);
    let trim = world.ask(Op::Discard, 0, 100);
    assert_eq!(world.answer(trim), Some(Ok(())));
    assert_eq!(world.discarded, (0..9).chain(10..100).collect::<Vec<_>>());
    assert_eq!((world.counts().used, world.written.len()), (1, 0));
    let misses = world.counts().misses;
    world.ask(Op::Read, 3, 1);
    assert_eq!(world.counts().misses, misses + 1);

    let mut world = World::new();
    world.ask(Op::Write, 0, 1);
    world.ask(Op::Flush, 0, 0);
    world.fails = |io| io.op == DeviceOp::Discard;
    let trim = world.ask(Op::Discard, 0, 1);
    assert_eq!((world.answer(trim), world.written.len()), (Some(Ok(())), 0));
}

/// Like [`config`], with a second disk in a partition of its own; the first writes past the cache from its first block on.
fn bypassing() -> Config {
    let mut config = config();
    config.disks.push(DiskConfig { uuid: [2; 16], offset_bytes: 1 << 20, size_bytes: 1 << 20 });
    config.slow.size_bytes = 2 << 20;
    config.fast.size_bytes = Layout::new(&[BLOCKS; 2]).end_bytes;
    if let Backing::Cached(cache) = &mut config.backing {
        cache.partitions = CachePartitions::PerDisk(vec![BLOCKS; 2]);
        cache.bypass_bytes = vec![Some(0)];
    }
    config
}

const SYNC_FAILS: Fails = FAILURES[1].1;

#[test]
fn a_sync_that_fails_fails_the_flush_that_waits_for_it_and_nothing_else() {
    let mut world = World::over(Fence::new(bypassing()).unwrap());
    let write = world.ask(Op::Write, 0, 2);
    assert_eq!((world.answer(write), &world.written[..]), (Some(Ok(())), &[0, 1][..]), "past the cache");
    assert_eq!((world.counts().used, world.fence.bypassed_bytes(DiskId(0))), (0, 8192));
    // The other disk has written nothing past its cache.
    world.ask_disk(1, Op::Write, 0, 1);
    world.fails = SYNC_FAILS;
    let [other, flush] = [1, 0].map(|disk| world.ask_disk(disk, Op::Flush, 0, 0));
    assert_eq!(world.answer(other), Some(Ok(())));
    assert_eq!(world.answer(flush), Some(Err(IoError::Device(5))));
    assert!(!world.fence.is_loss_untold(), "the flush has told");
    // It is not stable before a sync has succeeded.
    let again = world.ask(Op::Flush, 0, 0);
    assert_eq!(world.answer(again), Some(Err(IoError::Device(5))));
    world.fails = |_| false;
    let again = world.ask(Op::Flush, 0, 0);
    assert_eq!(world.answer(again), Some(Ok(())));
    assert_eq!((world.counts().failing, world.counts().errors), (false, 0), "the cache has lost nothing");
}

/// What the driver flushes for itself tells no guest.
#[test]
fn a_loss_that_no_guest_has_heard_of_is_told_by_its_next_flush() {
    let mut world = World::over(Fence::new(bypassing()).unwrap());
    world.ask(Op::Write, 0, 2);
    world.fails = SYNC_FAILS;
    world.ask(Op::Flush, 0, 0);
    world.fence.flush_untold(DiskId(0), IoError::Device(5));
    world.fence.flush_untold(DiskId(1), IoError::Device(5));
    world.fails = |_| false;
    assert!(world.fence.is_loss_untold());
    let [flush, next, other] = [0, 0, 1].map(|disk| world.ask_disk(disk, Op::Flush, 0, 0));
    assert_eq!(world.answer(flush), Some(Err(IoError::Device(5))));
    assert_eq!((world.answer(next), world.answer(other)), (Some(Ok(())), Some(Ok(()))));
}

/// A sync for another disk's write-backs fails: nobody waits for it who wrote past the cache.
#[test]
fn what_another_disks_sync_has_lost_is_told_by_the_next_flush() {
    let mut world = World::over(Fence::new(bypassing()).unwrap());
    world.ask(Op::Write, 0, 2);
    world.fails = SYNC_FAILS;
    for block in 0..55 {
        world.ask_disk(1, Op::Write, block, 1);
        world.ask_disk(1, Op::Flush, 0, 0);
    }
    assert!(world.fence.is_loss_untold());
    world.fails = |_| false;
    world.pass(5 * SECOND);
    let [flush, next] = [0, 0].map(|disk| world.ask_disk(disk, Op::Flush, 0, 0));
    assert_eq!(world.answer(flush), Some(Err(IoError::Device(5))));
    assert_eq!(world.answer(next), Some(Ok(())));
}

/// A process that is killed with writes past the cache that are not stable; `between` happens before the next one serves. How
/// the first two flushes end then, of the disk that wrote past the cache and of the other.
fn after_a_kill(between: impl FnOnce(&mut World, &MemoryLog)) -> [[Result<(), IoError>; 2]; 2] {
    let config = bypassing();
    let Backing::Cached(cache) = &config.backing else { panic!() };
    let superblocks: Vec<u8> = format(&config, cache).into_iter().flat_map(|write| write.bytes).collect();
    let logs: Vec<Vec<u8>> = Layout::new(&[BLOCKS; 2])
        .partitions
        .iter()
        .map(|partition| vec![0; partition.log_blocks as usize * 4096])
        .collect();
    let words = Arc::new((0..MemoryLog::words(&[BLOCKS; 2])).map(|_| AtomicU64::new(0)).collect::<Vec<_>>());
    let memory = MemoryLog::new(words, [7, 7]);
    let image = Image { superblocks: &superblocks, logs: &logs, memory: Some(&memory) };
    let start = || Fence::recover(config.clone(), &image).unwrap().0;
    let mut world = World::over(start());
    world.ask(Op::Write, 0, 2);
    assert!(!memory.is_empty(), "the next process has to know that it is not stable");
    between(&mut world, &memory);
    let mut world = World::over(start());
    let ends = [0, 1].map(|disk| {
        [(); 2].map(|()| {
            let flush = world.ask_disk(disk, Op::Flush, 0, 0);
            world.answer(flush).unwrap()
        })
    });
    assert!(memory.is_empty(), "everything is told and stable");
    ends
}

#[test]
fn a_loss_outlives_a_kill_until_a_flush_has_told() {
    const FAILED: Result<(), IoError> = Err(IoError::Device(5));
    let good = [Ok(()); 2];
    assert_eq!(after_a_kill(|_, _| {}), [good, good], "the next process begins with a sync");
    assert_eq!(after_a_kill(|_, memory| memory.slow_sync_failed()), [[FAILED, Ok(())], good]);
    let lose = |world: &mut World, _: &MemoryLog| {
        world.fails = SYNC_FAILS;
        for block in 0..55 {
            world.ask_disk(1, Op::Write, block, 1);
        }
        assert!(world.fence.is_loss_untold());
    };
    assert_eq!(after_a_kill(lose), [[FAILED, Ok(())], good]);
    let told = |world: &mut World, _: &MemoryLog| {
        world.fails = SYNC_FAILS;
        world.ask(Op::Flush, 0, 0);
    };
    assert_eq!(after_a_kill(told), [good, good]);
}

/// What is in the cache stays there, what is not goes past it, part of a block through it.
#[test]
fn only_whole_blocks_that_the_cache_does_not_have_go_past_it() {
    let mut config = bypassing();
    if let Backing::Cached(cache) = &mut config.backing {
        cache.bypass_bytes = vec![Some(8192)];
    }
    let mut world = World::over(Fence::new(config).unwrap());
    world.ask(Op::Write, 3, 1);
    world.ask(Op::Read, 5, 1);
    for block in 0..8 {
        world.ask(Op::Write, block, 1);
    }
    assert_eq!(world.written, [2, 4, 6, 7], "two blocks begin the stream, 3 and 5 are in the cache");
    world.ask(Op::Flush, 0, 0);
    world.ask(Op::Write, 8, 1);
    assert_eq!(world.written.len(), 4, "a flush ends a stream");
    let used = world.counts().used;
    world.ask(Op::Read, 7, 1);
    assert_eq!(world.counts().used, used + 1, "what is stable is read into the cache");
    for block in 9..12 {
        world.ask(Op::Write, block, 1);
    }
    assert_eq!(world.written.len(), 6);
    let used = world.counts().used;
    world.ask(Op::Read, 11, 1);
    assert_eq!(world.counts().used, used, "what is not is not");
}

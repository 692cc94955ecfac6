//! What the fence's core costs: a request through the cache and a scheduler, devices of no cost, one thread.
//!
//! The loop does what a driver must: it submits, reports completions, carries out effects, and goes on to the next
//! deadline in time of its own making. Its own work counts as the fence's.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use anyhow::{Context, Result, ensure};
use rustix::time::{ClockId, clock_gettime};
use virtbench_fence::cache::{CacheConfig, CachePartitions, Image, Layout, MemoryLog, format};
use virtbench_fence::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use virtbench_fence::slots::{SlotOwner, SlotsConfig};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, DeviceConfig, DiskConfig, DiskId, Effect, Fence, IoId, Op,
    Request, RequestId, SchedulerConfig, Time,
};
use virtbench_units::Random;

use crate::pairs::{Verdict, median};

const DISKS: u16 = 4;
/// Outstanding requests of each disk.
const DEPTH: u64 = 32;
/// Blocks of each disk's partition: 4 GiB of cache in all.
const PARTITION_BLOCKS: u32 = 1 << 18;
const DISK_BYTES: u64 = 64 << 30;
const WARM_UP: u64 = 2_000_000;
const MEASURED: u64 = 1_000_000;
/// Time between two events of the loop.
const TICK_NS: u64 = 500;
/// Nanoseconds a device I/O at most, and so a request that is one.
const MOST_NS: f64 = 1000.0;

/// One way to ask.
struct Case {
    name: &'static str,
    scheduler: SchedulerConfig,
    cached: bool,
    /// With a log in memory, as the daemon has it.
    logged: bool,
    /// Blocks of each disk that are asked for.
    working_set: u64,
    /// Reads alone, of so many bytes; else writes and flushes of blocks beside reads.
    reads_bytes: Option<u32>,
}

fn cases() -> Vec<Case> {
    let slow = SlowPredictor::new(vec![Knot { distance_bytes: 0, access_ns: 3000.0 }], 1000);
    let fast = FastPredictor { base_ns: 500.0, per_io_ns: 600.0 };
    let slots = || {
        SchedulerConfig::Slots(SlotsConfig {
            owners: (0..DISKS).map(|disk| SlotOwner::Disk(DiskId(disk))).collect(),
            slot_ns: 100_000,
            predict: Predictors { slow: slow.clone(), fast },
            max_batch: 32,
        })
    };
    let fits = u64::from(PARTITION_BLOCKS) / 2;
    let case = |name, scheduler, cached, working_set| Case {
        name,
        scheduler,
        cached,
        logged: cached,
        working_set,
        reads_bytes: None,
    };
    let reads = |name, working_set, bytes| Case {
        reads_bytes: Some(bytes),
        ..case(name, SchedulerConfig::Fifo, true, working_set)
    };
    let unlogged = case("FIFO, cached, all hits, no log in memory", SchedulerConfig::Fifo, true, fits);
    vec![
        case("FIFO, no cache", SchedulerConfig::Fifo, false, fits),
        case("slots, no cache", slots(), false, fits),
        case("FIFO, cached, all hits", SchedulerConfig::Fifo, true, fits),
        Case { logged: false, ..unlogged },
        case("slots, cached, all hits", slots(), true, fits),
        case("FIFO, cached, half of it missed", SchedulerConfig::Fifo, true, 4 * fits),
        case("slots, cached, half of it missed", slots(), true, 4 * fits),
        reads("FIFO, cached, reads missed and filled", 32 * fits, 4096),
        reads("FIFO, cached, parts of blocks read, all hits", fits / 8, 512),
    ]
}

/// Measures every case; `only` limits them to those whose name contains it.
pub fn check(rounds: usize, only: Option<&str>) -> Result<Vec<Verdict>> {
    println!(
        "{:<56} {:>10} {:>10} {:>10} {:>10}",
        "fence, one core", "ns/request", "I/Os each", "ns/I/O", "promise"
    );
    let mut verdicts = Vec::new();
    for case in cases().iter().filter(|case| only.is_none_or(|only| case.name.contains(only))) {
        let mut driver = Driver::new(case).context(case.name)?;
        driver.run(WARM_UP)?;
        let mut samples = Vec::new();
        let before = driver.ios;
        for _ in 0..rounds {
            let begun_ns = cpu_ns();
            driver.run(MEASURED)?;
            samples.push((cpu_ns() - begun_ns) as f64 / MEASURED as f64);
        }
        let ios = (driver.ios - before) as f64 / (rounds as u64 * MEASURED) as f64;
        let ns = median(samples);
        let each = ns / ios;
        let verdict = if each <= MOST_NS { Verdict::Kept } else { Verdict::Broken };
        let word = if verdict == Verdict::Kept { "kept" } else { "BROKEN" };
        let promise = format!("<= {MOST_NS}");
        println!("{:<56} {ns:>10.0} {ios:>10.2} {each:>10.0} {promise:>10}  {word}", case.name);
        verdicts.push(verdict);
    }
    ensure!(!verdicts.is_empty(), "no case of the fence is called so");
    Ok(verdicts)
}

/// Time of this thread on a processor: others may have it meanwhile.
pub fn cpu_ns() -> i64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

fn config(case: &Case) -> Config {
    let disk = |disk: u16| DiskConfig {
        uuid: u128::from(disk + 1).to_le_bytes(),
        offset_bytes: u64::from(disk) * DISK_BYTES,
        size_bytes: DISK_BYTES,
    };
    let size_bytes = u64::from(DISKS) * DISK_BYTES;
    let cache = CacheConfig {
        uuid: [1; 16],
        partitions: CachePartitions::PerDisk(vec![PARTITION_BLOCKS; usize::from(DISKS)]),
        free_target: 1024,
        low_watermark: 64,
        scratch_blocks: 64,
        bypass_bytes: Vec::new(),
    };
    Config {
        disks: (0..DISKS).map(disk).collect(),
        slow: DeviceConfig { size_bytes, depth: 32 },
        fast: DeviceConfig { size_bytes, depth: 32 },
        backing: if case.cached { Backing::Cached(cache) } else { Backing::Fast },
        scheduler: case.scheduler.clone(),
        max_request_bytes: 128 << 10,
    }
}

/// A fence over an empty cache.
fn fence(case: &Case) -> Result<Fence> {
    let config = config(case);
    let Backing::Cached(cache) = config.backing.clone() else { return Ok(Fence::new(config)?) };
    let blocks = cache.partitions.blocks();
    let superblocks: Vec<u8> = format(&config, &cache).into_iter().flat_map(|write| write.bytes).collect();
    let logs: Vec<Vec<u8>> = Layout::new(blocks)
        .partitions
        .iter()
        .map(|partition| vec![0; partition.log_blocks as usize * 4096])
        .collect();
    let words: Vec<AtomicU64> = (0..MemoryLog::words(blocks)).map(|_| AtomicU64::new(0)).collect();
    let memory = case.logged.then(|| MemoryLog::new(Arc::new(words), [0; 2]));
    let image = Image { superblocks: &superblocks, logs: &logs, memory: memory.as_ref() };
    Ok(Fence::recover(config, &image)?.0)
}

/// Closed loops over devices that serve in the order of arrival.
struct Driver {
    fence: Fence,
    now_ns: u64,
    random: Random,
    working_set: u64,
    reads_bytes: Option<u32>,
    devices: [VecDeque<IoId>; 2],
    /// Disks that may ask again.
    ready: Vec<u16>,
    answered: u64,
    ios: u64,
}

impl Driver {
    fn new(case: &Case) -> Result<Self> {
        let ready = (0..DISKS).flat_map(|disk| (0..DEPTH).map(move |_| disk)).collect();
        Ok(Self {
            fence: fence(case)?,
            now_ns: 0,
            random: Random::new(1),
            working_set: case.working_set,
            reads_bytes: case.reads_bytes,
            devices: [VecDeque::new(), VecDeque::new()],
            ready,
            answered: 0,
            ios: 0,
        })
    }

    /// Until so many more requests are answered.
    fn run(&mut self, requests: u64) -> Result<()> {
        let until = self.answered + requests;
        while self.answered < until {
            self.now_ns += TICK_NS;
            let now = Time::from_ns(self.now_ns);
            if let Some(disk) = self.ready.pop() {
                self.ask(now, disk);
            } else if let Some(io) = self.next_done() {
                self.fence.on_device(now, Completion { io, result: Ok(()), data_crc: 0 })?;
            } else {
                let deadline =
                    self.fence.next_deadline().context("requests wait and nothing will wake them")?;
                self.now_ns = self.now_ns.max(deadline.ns());
                self.fence.on_timer(Time::from_ns(self.now_ns));
            }
            self.carry_out()?;
        }
        Ok(())
    }

    /// Four of the fast device to one of the slow.
    fn next_done(&mut self) -> Option<IoId> {
        let [slow, fast] = &mut self.devices;
        let (first, second) = if self.random.below(5) == 0 { (slow, fast) } else { (fast, slow) };
        first.pop_front().or_else(|| second.pop_front())
    }

    /// Three reads to one write of a block, now and then a flush; or reads alone. Parts of a block cannot fill it, so the
    /// warm-up reads blocks.
    fn ask(&mut self, now: Time, disk: u16) {
        let part = self.reads_bytes.filter(|_| self.answered >= WARM_UP);
        let op = match self.random.below(256) {
            _ if self.reads_bytes.is_some() => Op::Read,
            0 => Op::Flush,
            1..64 => Op::Write,
            _ => Op::Read,
        };
        let offset_bytes = self.random.below(self.working_set) * 4096;
        let request = Request {
            id: RequestId(u64::from(disk)),
            disk: DiskId(disk),
            op,
            offset_bytes,
            len_bytes: part.unwrap_or(4096),
            buffer: BufferId(0),
        };
        self.fence.submit(now, request);
    }

    #[allow(clippy::cast_possible_truncation)] // an id is a disk
    fn carry_out(&mut self) -> Result<()> {
        while let Some(effect) = self.fence.poll_effect() {
            match effect {
                Effect::Dispatch(io) => {
                    self.ios += 1;
                    self.devices[io.device.index()].push_back(io.id);
                }
                Effect::Copy { .. } => {}
                Effect::Complete { request, result } => {
                    result?;
                    self.answered += 1;
                    self.ready.push(request.0 as u16);
                }
            }
        }
        Ok(())
    }
}

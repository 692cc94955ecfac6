//! Single bits flip in every structure of a cache: superblocks, log, cached data, the log in memory, and a whole log is
//! emptied. A start is then refused, or every block that was flushed is read as it was written or not at all.
//!
//! `VIRTBENCH_FLIPS` says how many bits of each structure (400 by default; `make soak` flips many), `VIRTBENCH_SEED` which.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, clippy::expect_used)]
#![allow(clippy::disallowed_methods, reason = "a test may read what it is told to do from the environment")]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use virtbench_fence::cache::{self, CacheConfig, CachePartitions, Image, Layout, MemoryLog};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, Data, DeviceConfig, DeviceIo, DeviceOp, DiskConfig, DiskId,
    Effect, Fence, IoError, Op, Request, RequestId, SchedulerConfig, StartError, Time,
};
use virtbench_units::Random;

const BLOCK: usize = 4096;
/// Three chunks of the log.
const CACHE_BLOCKS: u32 = 130;
const DISK_BLOCKS: u64 = 160;

fn config() -> Config {
    let cache = CacheConfig {
        uuid: [7; 16],
        partitions: CachePartitions::Shared(CACHE_BLOCKS),
        free_target: 40,
        low_watermark: 2,
        scratch_blocks: 8,
        bypass_bytes: Vec::new(),
    };
    let size_bytes = DISK_BLOCKS * BLOCK as u64;
    Config {
        disks: vec![DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes }],
        slow: DeviceConfig { size_bytes, depth: 1 },
        fast: DeviceConfig { size_bytes: Layout::new(&[CACHE_BLOCKS]).end_bytes, depth: 4 },
        backing: Backing::Cached(cache),
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 8192,
    }
}

/// Devices and memory as somebody left them, and what was written to each block last.
#[derive(Clone)]
struct State {
    devices: [Vec<u8>; 2],
    memory: Option<Vec<u64>>,
    written: BTreeMap<u64, u64>,
}

/// A fence that serves from a state. Every I/O is carried out at once and in order.
struct Served {
    fence: Fence,
    devices: [Vec<u8>; 2],
    memory: Option<Arc<Vec<AtomicU64>>>,
    scratch: Vec<[u8; BLOCK]>,
    guest: Vec<u8>,
    next: u64,
}

impl Served {
    fn start(state: &State) -> Result<Self, StartError> {
        let mut devices = state.devices.clone();
        let memory: Option<Arc<Vec<AtomicU64>>> =
            state.memory.as_ref().map(|words| Arc::new(words.iter().copied().map(AtomicU64::new).collect()));
        let log = Layout::new(&[CACHE_BLOCKS]).partitions[0];
        let at = log.log_offset_bytes as usize;
        let logs = [devices[1][at..at + log.log_blocks as usize * BLOCK].to_vec()];
        let shared = memory.clone().map(|words| MemoryLog::new(words, [3, 5]));
        let superblocks = devices[1][..2 * BLOCK].to_vec();
        let image = Image { superblocks: &superblocks, logs: &logs, memory: shared.as_ref() };
        let (fence, writes) = Fence::recover(config(), &image)?;
        for write in writes {
            let at = write.offset_bytes as usize;
            devices[1][at..at + write.bytes.len()].copy_from_slice(&write.bytes);
        }
        let scratch = vec![[0; BLOCK]; fence.scratch_blocks()];
        Ok(Self { fence, devices, memory, scratch, guest: vec![0; BLOCK], next: 0 })
    }

    fn memory(&mut self, data: Data, len: usize) -> &mut [u8] {
        match data {
            Data::Guest { at_bytes, .. } => &mut self.guest[at_bytes as usize..at_bytes as usize + len],
            Data::Scratch { block, at_bytes } => {
                &mut self.scratch[block as usize][at_bytes as usize..at_bytes as usize + len]
            }
            Data::Core | Data::Pieces | Data::None => &mut [],
        }
    }

    /// A device has read something.
    fn arrive(&mut self, io: &DeviceIo, bytes: &[u8]) {
        let mut pieces = vec![(io.data, io.len_bytes)];
        if io.data == Data::Pieces {
            pieces.clear();
            self.fence.pieces(io.id, |data, len_bytes| pieces.push((data, len_bytes)));
        }
        let mut rest = bytes;
        for (data, len_bytes) in pieces {
            let (piece, after) = rest.split_at(len_bytes as usize);
            rest = after;
            if data != Data::None {
                self.memory(data, piece.len()).copy_from_slice(piece);
            }
        }
    }

    fn carry_out(&mut self, io: DeviceIo) -> Completion {
        let (device, at, len) = (io.device.index(), io.offset_bytes as usize, io.len_bytes as usize);
        let mut data_crc = 0;
        match io.op {
            DeviceOp::Read => {
                let bytes = self.devices[device][at..at + len].to_vec();
                data_crc = crc32c::crc32c(&bytes);
                self.arrive(&io, &bytes);
            }
            DeviceOp::Write => {
                let bytes = match self.fence.bytes(io.id) {
                    Some(bytes) => bytes.to_vec(),
                    None => self.memory(io.data, len).to_vec(),
                };
                data_crc = crc32c::crc32c(&bytes);
                self.devices[device][at..at + len].copy_from_slice(&bytes);
            }
            DeviceOp::Flush | DeviceOp::Discard => {}
        }
        Completion { io: io.id, result: Ok(()), data_crc }
    }

    fn request(&mut self, op: Op, block: u64) -> Result<(), IoError> {
        self.next += 1;
        let len_bytes = if op == Op::Flush { 0 } else { BLOCK as u32 };
        let (id, buffer) = (RequestId(self.next), BufferId(0));
        let offset_bytes = block * BLOCK as u64;
        self.fence.submit(Time::ZERO, Request { id, disk: DiskId(0), op, offset_bytes, len_bytes, buffer });
        let mut answer = None;
        while let Some(effect) = self.fence.poll_effect() {
            match effect {
                Effect::Dispatch(io) => {
                    let done = self.carry_out(io);
                    self.fence.on_device(Time::ZERO, done).unwrap();
                }
                Effect::Copy { from, to, len_bytes } => {
                    let bytes = self.memory(from, len_bytes as usize).to_vec();
                    self.memory(to, len_bytes as usize).copy_from_slice(&bytes);
                }
                Effect::Complete { result, .. } => answer = Some(result),
            }
        }
        answer.expect("an answer")
    }

    fn write(&mut self, block: u64, value: u64) {
        self.guest = value.to_le_bytes().repeat(BLOCK / 8);
        self.request(Op::Write, block).unwrap();
    }

    fn leave(self, written: BTreeMap<u64, u64>) -> State {
        let words = |words: &Arc<Vec<AtomicU64>>| words.iter().map(|w| w.load(Ordering::Relaxed)).collect();
        State { devices: self.devices, memory: self.memory.as_ref().map(words), written }
    }
}

fn formatted(with_memory: bool) -> State {
    let config = config();
    let Backing::Cached(cache) = &config.backing else { panic!("no cache") };
    let sizes = [config.slow.size_bytes, config.fast.size_bytes];
    let mut devices = sizes.map(|bytes| vec![0u8; bytes as usize]);
    for write in cache::format(&config, cache) {
        let at = write.offset_bytes as usize;
        devices[1][at..at + write.bytes.len()].copy_from_slice(&write.bytes);
    }
    let memory = with_memory.then(|| vec![0; 8 + 2 * (4 + 4 * 64)]);
    State { devices, memory, written: BTreeMap::new() }
}

/// A daemon's work upon a state: versions of a few blocks among many others, flushed now and then; the last ones are
/// flushed if there is no log in memory.
fn worked(state: &State, writes: u64, random: &mut Random) -> State {
    let mut written = state.written.clone();
    let mut served = Served::start(state).unwrap();
    for number in 0..writes {
        let block = if random.below(2) == 0 { random.below(8) } else { random.below(DISK_BLOCKS) };
        let value = random.below(u64::MAX);
        served.write(block, value);
        written.insert(block, value);
        if random.below(6) == 0 || state.memory.is_none() && number + 1 == writes {
            served.request(Op::Flush, 0).unwrap();
        }
    }
    served.leave(written)
}

/// What a start and every block have to say: how many were read, how many refused. `None` if the start is refused.
///
/// # Errors
/// Other data than was written.
fn judge(state: &State) -> Result<Option<[u32; 2]>, String> {
    let Ok(mut served) = Served::start(state) else { return Ok(None) };
    let mut counts = [0, 0];
    for (&block, &value) in &state.written {
        match served.request(Op::Read, block) {
            Err(_) => counts[1] += 1,
            Ok(()) => {
                if served.guest != value.to_le_bytes().repeat(BLOCK / 8) {
                    let found = u64::from_le_bytes(served.guest[..8].try_into().unwrap());
                    return Err(format!("block {block}: {found:#x} was read, {value:#x} written"));
                }
                counts[0] += 1;
            }
        }
    }
    Ok(Some(counts))
}

fn variable(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text}")))
}

/// Histories that differ in how far the log has come round.
fn histories(with_memory: bool, mut each: impl FnMut(&State, &mut Random)) {
    let mut random = Random::new(variable("VIRTBENCH_SEED", 1));
    for writes in [1, 3, 20, 90, 300] {
        let first = worked(&formatted(with_memory), writes, &mut random);
        each(&first, &mut random);
        each(&worked(&first, 2 + writes / 2, &mut random), &mut random);
    }
}

/// Flips bits of a part of the fast device, one at a time. Parts that hold nothing but zeroes are passed over in
/// blocks of 512 bytes, but for one in eight.
fn flip(name: &str, part: Range<usize>, with_memory: bool) {
    let flips = variable("VIRTBENCH_FLIPS", 400);
    let (mut refused, mut served, mut wrong) = (0, [0, 0], Vec::new());
    histories(with_memory, |state, random| {
        assert!(judge(state).unwrap().is_some_and(|[read, failed]| read > 0 && failed == 0));
        for _ in 0..flips.div_ceil(10) {
            let at = loop {
                let at = part.start + random.below(part.len() as u64) as usize;
                let sector = &state.devices[1][at / 512 * 512..at / 512 * 512 + 512];
                if sector.iter().any(|byte| *byte != 0) || random.below(8) == 0 {
                    break at;
                }
            };
            let bit = random.below(8);
            let mut damaged = state.clone();
            damaged.devices[1][at] ^= 1 << bit;
            match judge(&damaged) {
                Ok(None) => refused += 1,
                Ok(Some(counts)) => served = std::array::from_fn(|index| served[index] + counts[index]),
                Err(why) => wrong.push(format!("bit {bit} of byte {at}: {why}")),
            }
        }
    });
    println!("{name}: {refused} starts refused, {} blocks read, {} not readable", served[0], served[1]);
    assert!(wrong.is_empty(), "{name}: {} flips gave wrong data, the first: {}", wrong.len(), wrong[0]);
    assert!(refused + served[0] > 0);
}

fn log() -> Range<usize> {
    let log = Layout::new(&[CACHE_BLOCKS]).partitions[0];
    log.log_offset_bytes as usize..log.data_offset_bytes as usize
}

#[test]
fn a_bit_of_a_superblock_flips() {
    flip("superblocks", 0..2 * BLOCK, false);
    flip("superblocks", 0..2 * BLOCK, true);
}

#[test]
fn a_bit_of_the_log_flips() {
    flip("log", log(), false);
    flip("log", log(), true);
}

#[test]
fn a_bit_of_cached_data_flips() {
    flip("data", log().end..config().fast.size_bytes as usize, false);
}

#[test]
fn a_bit_of_the_log_in_memory_flips() {
    let flips = variable("VIRTBENCH_FLIPS", 400);
    let (mut refused, mut wrong) = (0, Vec::new());
    histories(true, |state, random| {
        for _ in 0..flips.div_ceil(10) {
            let mut damaged = state.clone();
            let words = damaged.memory.as_mut().unwrap();
            // Most words have never been used: half of the flips are at the beginning of a half, or before.
            let at = match random.below(4) {
                0 => random.below(8),
                1 => 8 + random.below(8),
                2 => 8 + 4 + 4 * 64 + random.below(8),
                _ => random.below(words.len() as u64),
            };
            let bit = random.below(64);
            words[at as usize] ^= 1 << bit;
            match judge(&damaged) {
                Ok(found) => refused += u32::from(found.is_none()),
                Err(why) => wrong.push(format!("bit {bit} of word {at}: {why}")),
            }
        }
    });
    println!("memory: {refused} starts refused");
    assert!(wrong.is_empty(), "memory: {} flips gave wrong data, the first: {}", wrong.len(), wrong[0]);
    assert!(refused > 0);
}

#[test]
fn an_emptied_log_is_no_empty_cache() {
    for with_memory in [false, true] {
        histories(with_memory, |state, _| {
            let mut emptied = state.clone();
            emptied.devices[1][log()].fill(0);
            assert!(Served::start(&emptied).is_err(), "a log of zeroes was taken for a new one");
        });
    }
}

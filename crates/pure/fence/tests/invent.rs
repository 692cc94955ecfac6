//! A cache's metadata made of anybody's bytes: recovery refuses it or goes on from it, and never panics.
//!
//! Checksums are put right where the bytes ask for it, so that what lies behind them is reached too. The fuzz target
//! `fence` feeds the same function.

#![allow(clippy::cast_possible_truncation, clippy::unwrap_used, clippy::missing_panics_doc)]

use virtbench_fence::cache::{self, CacheConfig, CachePartitions, Image, Layout};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, DeviceConfig, DiskConfig, DiskId, Effect, Fence, Op, Request,
    RequestId, SchedulerConfig, Time,
};

const UUID: [u8; 16] = [7; 16];
const DISK_BLOCKS: u64 = 40;
/// Device I/Os after which requests that wait are lost: each takes a few, and an eviction of all blocks at most.
const MOST_IOS: usize = 20_000;

/// Bytes that end in zeros.
struct Source<'a>(std::slice::Iter<'a, u8>);

impl Source<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % bound
    }

    /// Small numbers mostly; now and then one near the end of what there is.
    fn number(&mut self) -> u64 {
        match self.byte() {
            255 => u64::MAX - u64::from(self.byte()),
            254 => 1 << (self.byte() % 64),
            small => u64::from(small),
        }
    }

    fn is_empty(&self) -> bool {
        self.0.len() == 0
    }
}

fn config(blocks: &[u32]) -> Config {
    let disk = |n: u8| DiskConfig {
        uuid: [n + 1; 16],
        offset_bytes: u64::from(n) * DISK_BLOCKS * 4096,
        size_bytes: DISK_BLOCKS * 4096,
    };
    let partitions = match *blocks {
        [all] => CachePartitions::Shared(all),
        _ => CachePartitions::PerDisk(blocks.to_vec()),
    };
    let cache = CacheConfig {
        uuid: UUID,
        partitions,
        free_target: 6,
        low_watermark: 1,
        scratch_blocks: 2,
        bypass_bytes: Vec::new(),
    };
    Config {
        disks: vec![disk(0), disk(1)],
        slow: DeviceConfig { size_bytes: 2 * DISK_BLOCKS * 4096, depth: 2 },
        fast: DeviceConfig { size_bytes: 1 << 22, depth: 4 },
        backing: Backing::Cached(cache),
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 8192,
    }
}

fn seal(bytes: &mut [u8], from: usize) {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&UUID), &bytes[from..from + 28]);
    bytes[from + 28..from + 32].copy_from_slice(&crc.to_le_bytes());
}

/// Makes metadata of the bytes, starts a fence from it, and has that serve both disks.
pub fn recover_from(bytes: &[u8]) {
    let mut source = Source(bytes.iter());
    let blocks: &[u32] = [&[130][..], &[20, 70][..]][usize::from(source.byte() % 2)];
    let config = config(blocks);
    let Backing::Cached(cache) = &config.backing else { return };
    let mut superblocks = vec![0; 8192];
    for write in cache::format(&config, cache) {
        let at = write.offset_bytes as usize;
        superblocks[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
    }
    let layout = Layout::new(blocks);
    let mut logs: Vec<Vec<u8>> =
        layout.partitions.iter().map(|part| vec![0; part.log_blocks as usize * 4096]).collect();
    let mut headers = Vec::new();
    while !source.is_empty() {
        let which = source.below(logs.len());
        let log = &mut logs[which];
        let block = source.below(log.len() / 4096) * 4096;
        match source.byte() % 8 {
            0..=3 => {
                let at = block + (1 + source.below(127)) * 32;
                log[at..at + 8].copy_from_slice(&source.number().to_le_bytes());
                let key = ((source.number() % 3) << 48) | (source.number() % (DISK_BLOCKS + 2));
                log[at + 8..at + 16].copy_from_slice(&key.to_le_bytes());
                log[at + 16..at + 20].copy_from_slice(&(source.number() as u32).to_le_bytes());
                log[at + 20..at + 24].copy_from_slice(&u32::from(source.byte() % 2).to_le_bytes());
                log[at + 24..at + 28].copy_from_slice(&(u32::from(source.byte() % 5)).to_le_bytes());
                seal(log, at);
            }
            4 | 5 => {
                log[block..block + 8].copy_from_slice(&source.number().to_le_bytes());
                log[block + 8..block + 12].copy_from_slice(&(source.number() as u32).to_le_bytes());
                log[block + 12..block + 16].copy_from_slice(&(source.number() as u32).to_le_bytes());
                log[block + 20..block + 28].copy_from_slice(&source.number().to_le_bytes());
                headers.push((which, block));
            }
            6 => log[block + source.below(4096)] ^= source.byte(),
            _ => {
                let copy = source.below(2) * 4096;
                superblocks[copy + source.below(200)] ^= source.byte();
                if source.byte() > 64 {
                    let crc = crc32c::crc32c(&superblocks[copy..copy + 4092]);
                    superblocks[copy + 4092..copy + 4096].copy_from_slice(&crc.to_le_bytes());
                }
            }
        }
    }
    for (which, block) in headers {
        let log = &mut logs[which];
        let crc = crc32c::crc32c(&log[block + 32..block + 4096]);
        log[block + 16..block + 20].copy_from_slice(&crc.to_le_bytes());
        seal(log, block);
    }
    let image = Image { superblocks: &superblocks, logs: &logs, memory: None };
    if let Ok(found) = cache::inspect(&image) {
        let live: usize = (0..found.partitions.len()).map(|partition| found.live(partition).count()).sum();
        assert_eq!(live as u32, found.partitions.iter().map(|part| part.clean + part.dirty).sum::<u32>());
    }
    if let Ok((fence, writes)) = Fence::recover(config, &image) {
        let superblock = writes.last().unwrap();
        assert!(superblock.bytes.len() == 4096 && superblock.offset_bytes <= 4096);
        serve(fence);
    }
}

/// Overwrites half of both disks, reads all of it, flushes: every request is answered, well or badly.
fn serve(mut fence: Fence) {
    let mut ios = 0;
    for id in 0..4 * DISK_BLOCKS {
        let op = match id % 4 {
            0 => Op::Write,
            3 if id % 8 == 3 => Op::Flush,
            _ => Op::Read,
        };
        let request = Request {
            id: RequestId(id),
            disk: DiskId((id % 2) as u16),
            op,
            offset_bytes: id * 7 % DISK_BLOCKS * 4096,
            len_bytes: if id % 3 == 0 { 2048 } else { 4096 },
            buffer: BufferId(id),
        };
        fence.submit(Time::ZERO, request);
        while let Some(effect) = fence.poll_effect() {
            if let Effect::Dispatch(io) = effect {
                ios += 1;
                assert!(ios < MOST_IOS, "no end of device I/Os");
                fence.on_device(Time::ZERO, Completion { io: io.id, result: Ok(()), data_crc: 0 }).unwrap();
            }
        }
    }
    assert_eq!(fence.outstanding(), 0, "{:?}", fence.cache_counts().collect::<Vec<_>>());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn no_metadata_makes_recovery_panic(bytes in prop::collection::vec(any::<u8>(), 0..1500)) {
            super::recover_from(&bytes);
        }
    }
}

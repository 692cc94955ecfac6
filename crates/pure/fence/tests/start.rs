//! What a fence refuses to start with.

#![allow(clippy::unwrap_used)]

use virtbench_fence::cache::{self, CacheConfig, CachePartitions, Image, Layout, RecoveryError};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, ConfigError, Data, Device, DeviceConfig, DeviceOp, DiskConfig,
    DiskId, Effect, Fence, Op, Request, RequestId, SchedulerConfig, StartError, Time,
};

fn config() -> Config {
    let disk =
        |n: u8| DiskConfig { uuid: [n + 1; 16], offset_bytes: u64::from(n) << 20, size_bytes: 1 << 20 };
    Config {
        disks: vec![disk(0), disk(1)],
        slow: DeviceConfig { size_bytes: 2 << 20, depth: 1 },
        fast: DeviceConfig { size_bytes: 1 << 20, depth: 4 },
        backing: Backing::Cached(cache_config(vec![40, 40])),
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 8192,
    }
}

fn cache_config(blocks: Vec<u32>) -> CacheConfig {
    CacheConfig {
        uuid: [7; 16],
        partitions: CachePartitions::PerDisk(blocks),
        free_target: 8,
        low_watermark: 2,
        scratch_blocks: 4,
    }
}

/// The fast device after a write and a flush of disk 1, or after nothing.
fn used(write: bool) -> Vec<u8> {
    let config = config();
    let Backing::Cached(cache) = &config.backing else { panic!("no cache") };
    let mut device = vec![0u8; 1 << 20];
    for write in cache::format(&config, cache) {
        let at = usize::try_from(write.offset_bytes).unwrap();
        device[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
    }
    let mut fence = Fence::new(config).unwrap();
    let ops: &[Op] = if write { &[Op::Write, Op::Flush] } else { &[] };
    for (id, &op) in (0..).zip(ops) {
        let (id, buffer) = (RequestId(id), BufferId(id));
        fence.submit(
            Time::ZERO,
            Request { id, disk: DiskId(1), op, offset_bytes: 0, len_bytes: 4096, buffer },
        );
        while let Some(effect) = fence.poll_effect() {
            let Effect::Dispatch(io) = effect else { continue };
            if let (DeviceOp::Write, Data::Core) = (io.op, io.data) {
                assert_eq!(io.device, Device::Fast);
                let at = usize::try_from(io.offset_bytes).unwrap();
                device[at..at + io.len_bytes as usize].copy_from_slice(fence.bytes(io.id).unwrap());
            }
            fence.on_device(Time::ZERO, Completion { io: io.id, result: Ok(()), data_crc: 0 }).unwrap();
        }
    }
    assert_eq!(fence.outstanding(), 0);
    device
}

fn recover(config: Config, device: &[u8]) -> Result<Fence, StartError> {
    let layout = Layout::new(&[40, 40]);
    let log = |part: &cache::PartitionLayout| {
        let at = usize::try_from(part.log_offset_bytes).unwrap();
        device[at..at + part.log_blocks as usize * 4096].to_vec()
    };
    let logs: Vec<_> = layout.partitions.iter().map(log).collect();
    Fence::recover(config, &Image { superblocks: &device[..8192], logs: &logs, memory: None })
        .map(|(fence, _)| fence)
}

#[test]
fn a_dirty_cache_refuses_to_start_without_its_disk() {
    let dirty = used(true);
    assert!(recover(config(), &dirty).is_ok());
    let mut another = config();
    another.disks[1].uuid = [9; 16];
    let refused = |found| RecoveryError::DirtyDisk { disk: 1, expected: [2; 16], found, dirty_blocks: 1 };
    assert_eq!(recover(another.clone(), &dirty).err(), Some(refused(Some([9; 16])).into()));
    let mut missing = config();
    missing.disks.truncate(1);
    missing.backing = Backing::Cached(cache_config(vec![40]));
    assert_eq!(recover(missing, &dirty).err(), Some(refused(None).into()));
    let mut smaller = config();
    smaller.backing = Backing::Cached(cache_config(vec![40, 39]));
    let was = RecoveryError::DirtyPartitions { was: vec![40, 40] };
    assert_eq!(recover(smaller, &dirty).err(), Some(was.into()));
    // Nothing unwritten of a disk that is there: nothing would be lost.
    assert_eq!(recover(another, &used(false)).err(), Some(RecoveryError::NeedsFormat.into()));
}

#[test]
fn what_was_never_a_cache_is_not_taken_for_one() {
    assert_eq!(recover(config(), &vec![0; 1 << 20]).err(), Some(RecoveryError::NoSuperblock.into()));
    let mut torn = used(true);
    torn[100] ^= 1;
    assert!(recover(config(), &torn).is_ok(), "one superblock is enough");
    torn[4196] ^= 1;
    assert_eq!(recover(config(), &torn).err(), Some(RecoveryError::NoSuperblock.into()));
}

#[test]
fn caches_that_do_not_fit_are_refused() {
    let with = |cache| Fence::new(Config { backing: Backing::Cached(cache), ..config() }).err();
    assert_eq!(with(cache_config(vec![40])), Some(ConfigError::CachePartitions { partitions: 1, disks: 2 }));
    let small = ConfigError::CacheSize { partition: 1, blocks: 10, needs: 11 };
    assert_eq!(with(cache_config(vec![40, 10])), Some(small));
    assert!(matches!(with(cache_config(vec![40, 4000])), Some(ConfigError::CacheBeyondDevice { .. })));
    let marks = CacheConfig { low_watermark: 6, ..cache_config(vec![40, 40]) };
    assert_eq!(with(marks), Some(ConfigError::Watermarks { free_target: 8, low_watermark: 6, request: 3 }));
    let mut overlapping = config();
    overlapping.disks[1].offset_bytes = 4096;
    assert_eq!(Fence::new(overlapping).err(), Some(ConfigError::DisksOverlap { first: 0, second: 1 }));
}

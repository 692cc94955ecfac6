//! What a fence refuses to start with.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use virtbench_fence::cache::{self, CacheConfig, CachePartitions, Image, Layout, RecoveryError};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, ConfigError, Data, Device, DeviceConfig, DeviceOp, DiskConfig,
    DiskId, Effect, Fence, IoError, Op, Request, RequestId, SchedulerConfig, StartError, Time,
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
        bypass_bytes: Vec::new(),
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

/// Asks for a block, and gives the answer.
fn ask(fence: &mut Fence, disk: u16, op: Op) -> Result<(), IoError> {
    let (id, disk, buffer) = (RequestId(9), DiskId(disk), BufferId(9));
    fence.submit(Time::ZERO, Request { id, disk, op, offset_bytes: 0, len_bytes: 4096, buffer });
    let mut answer = None;
    while let Some(effect) = fence.poll_effect() {
        match effect {
            Effect::Dispatch(io) => {
                let done = Completion { io: io.id, result: Ok(()), data_crc: 0 };
                fence.on_device(Time::ZERO, done).unwrap();
            }
            Effect::Complete { result, .. } => answer = Some(result),
            Effect::Copy { .. } => {}
        }
    }
    answer.unwrap()
}

#[test]
fn a_partition_whose_log_is_damaged_is_sealed_and_the_others_are_served() {
    let mut damaged = used(true);
    let logs = Layout::new(&[40, 40]).partitions;
    let of_1 = logs[1].log_offset_bytes as usize;
    // More than a bit of the only entry of disk 1.
    damaged[of_1 + 40] ^= 3;
    let mut fence = recover(config(), &damaged).unwrap();
    assert_eq!([0, 1].map(|disk| fence.is_sealed(DiskId(disk))), [false, true]);
    assert!(fence.damage().iter().all(|fault| fault.partition() == Some(1)) && !fence.damage().is_empty());
    for op in [Op::Write, Op::Flush, Op::Read, Op::Discard] {
        assert_eq!(ask(&mut fence, 0, op), Ok(()), "{op:?}");
        assert_eq!(ask(&mut fence, 1, op), Err(IoError::Corrupt), "{op:?}");
    }
    // Nothing of it is written: neither a log nor, with nothing in memory, anything else.
    let logs = logs.iter().map(|part| part.log_offset_bytes as usize);
    let logs: Vec<_> = logs.map(|at| damaged[at..at + 8192].to_vec()).collect();
    let image = Image { superblocks: &damaged[..8192], logs: &logs, memory: None };
    let (_, writes) = Fence::recover(config(), &image).unwrap();
    assert!(writes.iter().all(|write| (write.offset_bytes as usize) < of_1), "{writes:?}");

    let mut shared = used(true);
    shared[of_1 + 40] ^= 1;
    assert!(recover(config(), &shared).unwrap().damage().is_empty(), "one bit is flipped back");
}

#[test]
fn a_cache_of_an_earlier_version_is_marked_as_of_this_one_in_both_superblocks() {
    let mut earlier = used(true);
    for copy in [0, 4096] {
        earlier[copy..copy + 8].copy_from_slice(b"vbfence1");
        let crc = crc32c::crc32c(&earlier[copy..copy + 4092]).to_le_bytes();
        earlier[copy + 4092..copy + 4096].copy_from_slice(&crc);
    }
    let logs: Vec<_> = Layout::new(&[40, 40])
        .partitions
        .iter()
        .map(|part| earlier[part.log_offset_bytes as usize..][..8192].to_vec())
        .collect();
    let superblocks = earlier[..8192].to_vec();
    let image = Image { superblocks: &superblocks, logs: &logs, memory: None };
    for write in Fence::recover(config(), &image).unwrap().1 {
        let at = write.offset_bytes as usize;
        earlier[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
        assert!(recover(config(), &earlier).is_ok());
    }
    assert_eq!([&earlier[..8], &earlier[4096..4104]], [b"vbfence2"; 2]);
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

//! What an inspection of a cache finds, and what it takes for a fault.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use virtbench_fence::cache::{self, CacheConfig, CachePartitions, Fault, Image, Inspection, Layout};
use virtbench_fence::{
    Backing, BufferId, Completion, Config, Data, DeviceConfig, DeviceOp, DiskConfig, DiskId, Effect, Fence,
    Op, Request, RequestId, SchedulerConfig, Time,
};

/// Enough for a log of three chunks.
const BLOCKS: u32 = 130;
const UUID: [u8; 16] = [7; 16];

fn config() -> Config {
    let cache = CacheConfig {
        uuid: UUID,
        partitions: CachePartitions::Shared(BLOCKS),
        free_target: 8,
        low_watermark: 2,
        scratch_blocks: 4,
        bypass_bytes: Vec::new(),
    };
    Config {
        disks: vec![DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes: 1 << 20 }],
        slow: DeviceConfig { size_bytes: 1 << 20, depth: 1 },
        fast: DeviceConfig { size_bytes: 1 << 20, depth: 4 },
        backing: Backing::Cached(cache),
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 8192,
    }
}

/// The fast device after `commits` flushes, each of a block that was written before.
fn used(commits: u64) -> Vec<u8> {
    let config = config();
    let Backing::Cached(cache) = &config.backing else { panic!("no cache") };
    let mut device = vec![0u8; 1 << 20];
    for write in cache::format(&config, cache) {
        let at = write.offset_bytes as usize;
        device[at..at + write.bytes.len()].copy_from_slice(&write.bytes);
    }
    let mut fence = Fence::new(config).unwrap();
    for id in 0..2 * commits {
        let op = if id % 2 == 0 { Op::Write } else { Op::Flush };
        let offset_bytes = id / 2 % 20 * 4096;
        let request = Request {
            id: RequestId(id),
            disk: DiskId(0),
            op,
            offset_bytes,
            len_bytes: 4096,
            buffer: BufferId(id),
        };
        fence.submit(Time::ZERO, request);
        while let Some(effect) = fence.poll_effect() {
            let Effect::Dispatch(io) = effect else { continue };
            if let (DeviceOp::Write, Data::Core) = (io.op, io.data) {
                let at = io.offset_bytes as usize;
                device[at..at + io.len_bytes as usize].copy_from_slice(fence.bytes(io.id).unwrap());
            }
            fence.on_device(Time::ZERO, Completion { io: io.id, result: Ok(()), data_crc: 0 }).unwrap();
        }
    }
    assert_eq!(fence.outstanding(), 0);
    device
}

fn log_at() -> usize {
    Layout::new(&[BLOCKS]).partitions[0].log_offset_bytes as usize
}

fn inspect(device: &[u8]) -> Inspection {
    let log = Layout::new(&[BLOCKS]).partitions[0];
    let logs = vec![device[log_at()..log_at() + log.log_blocks as usize * 4096].to_vec()];
    cache::inspect(&Image { superblocks: &device[..8192], logs: &logs, memory: None }).unwrap()
}

fn seal(entry: &mut [u8]) {
    let crc = crc32c::crc32c_append(crc32c::crc32c(&UUID), &entry[..28]);
    entry[28..32].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn an_inspection_counts_what_the_cache_holds() {
    let fresh = inspect(&used(0));
    assert_eq!((fresh.uuid, fresh.sequence, fresh.superblocks), (UUID, 1, [true; 2]));
    assert_eq!((fresh.partitions[0].free, fresh.partitions[0].commit), (BLOCKS, [0, 0]));
    let found = inspect(&used(5));
    let part = &found.partitions[0];
    assert_eq!((part.dirty, part.clean, part.free, part.retiring), (5, 0, BLOCKS - 5, 0));
    assert_eq!((part.dirty_by_disk.as_slice(), part.commit, part.next_generation), (&[5][..], [5, 5], 6));
    let live: Vec<_> = found.live(0).map(|live| (live.disk, live.disk_offset_bytes, live.dirty)).collect();
    assert_eq!(live, (0..5).map(|block| (0, block * 4096, true)).collect::<Vec<_>>());
    // More often round the log than it is long.
    let found = inspect(&used(100));
    assert!(found.faults.is_empty(), "{:?}", found.faults);
    assert_eq!(found.partitions[0].dirty, 20);
}

#[test]
fn a_damaged_log_is_a_fault_where_it_matters_and_a_torn_superblock_is_none() {
    let mut device = used(100);
    let log_blocks = Layout::new(&[BLOCKS]).partitions[0].log_blocks as usize;
    device[100] ^= 1;
    let torn = inspect(&device);
    assert!(torn.faults.is_empty() && torn.superblocks.contains(&false), "{torn:?}");
    let faults: Vec<_> = (0..log_blocks)
        .flat_map(|log_block| {
            let mut damaged = device.clone();
            damaged[log_at() + log_block * 4096 + 2000] ^= 6;
            inspect(&damaged).faults
        })
        .collect();
    // The younger half, less the newest block: whether that was ever whole nobody can tell.
    assert_eq!(faults.len(), log_blocks / 2 - 1, "{faults:?}");
    assert!(faults.iter().all(|fault| matches!(fault, Fault::Log { partition: 0, .. })));
}

#[test]
fn a_bit_of_the_log_that_flipped_is_no_fault() {
    let device = used(100);
    let found = inspect(&device);
    for bit in (0..Layout::new(&[BLOCKS]).partitions[0].log_blocks * 4096 * 8).step_by(617) {
        let mut damaged = device.clone();
        damaged[log_at() + bit as usize / 8] ^= 1 << (bit % 8);
        let again = inspect(&damaged);
        assert!(again.faults.is_empty(), "bit {bit}: {:?}", again.faults);
        assert_eq!(again.partitions, found.partitions, "bit {bit}");
    }
}

#[test]
fn entries_that_name_nothing_or_disagree_are_faults() {
    let device = used(3);
    let entry = log_at() + 32;
    let with = |at: usize, value: u64, width: usize| {
        let mut device = device.clone();
        let slot = entry + 63 * 32;
        let original = device[entry..entry + 32].to_vec();
        device[slot..slot + 32].copy_from_slice(&original);
        device[slot + at..slot + at + width].copy_from_slice(&value.to_le_bytes()[..width]);
        seal(&mut device[slot..slot + 32]);
        inspect(&device).faults
    };
    assert!(with(16, 500, 4).contains(&Fault::Stray { partition: 0, block: 500, disk: 0, at_bytes: 0 }));
    let beyond = Fault::Stray { partition: 0, block: 0, disk: 0, at_bytes: 1 << 20 };
    assert!(with(8, 256, 8).contains(&beyond));
    assert!(with(20, 1, 4).contains(&Fault::Contradiction { partition: 0, block: 0, generation: 1 }));
    let same = Fault::SameVersion { partition: 0, blocks: [0, 9], generation: 1 };
    assert!(with(16, 9, 4).contains(&same), "{:?}", with(16, 9, 4));
}

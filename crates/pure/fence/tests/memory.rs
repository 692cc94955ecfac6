//! What a cache block costs in memory, measured with an allocator that counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use virtbench_fence::cache::{CacheConfig, CachePartitions};
use virtbench_fence::{Backing, Config, DeviceConfig, DiskConfig, Fence, SchedulerConfig};

struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the memory came from `alloc` above with the same layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn config(blocks: u32) -> Config {
    let cache = CacheConfig {
        uuid: [1; 16],
        partitions: CachePartitions::Shared(blocks),
        free_target: 1024,
        low_watermark: 64,
        scratch_blocks: 256,
        bypass_bytes: Vec::new(),
    };
    Config {
        disks: vec![DiskConfig { uuid: [1; 16], offset_bytes: 0, size_bytes: 1 << 42 }],
        slow: DeviceConfig { size_bytes: 1 << 42, depth: 1 },
        fast: DeviceConfig { size_bytes: 1 << 42, depth: 32 },
        backing: Backing::Cached(cache),
        scheduler: SchedulerConfig::Fifo,
        max_request_bytes: 1 << 20,
    }
}

/// A cache of 1 GiB, and of 4/3 GiB, for which the index is twice as large: the dearest size there is. The state
/// of a block is the same in a cache of any size.
#[test]
fn metadata_in_memory_is_under_a_fiftieth_of_the_cache() {
    for blocks in [1u32 << 18, (1 << 20) / 3 + 1] {
        let before = HELD.load(Ordering::Relaxed);
        let fence = Fence::new(config(blocks)).unwrap_or_else(|error| panic!("{error}"));
        let held = HELD.load(Ordering::Relaxed) - before;
        let per_block = held as f64 / f64::from(blocks);
        let tebibyte_gib = per_block * f64::from(1 << 28) / f64::from(1 << 30);
        println!("{per_block:.1} bytes a block of 4096, {tebibyte_gib:.1} GiB for a cache of 1 TiB");
        assert!(per_block < 4096.0 / 50.0, "{per_block}");
        assert!(held >= fence.cache_memory_bytes());
    }
}

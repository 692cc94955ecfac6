//! What it costs here to cross into the kernel, which is most of what a guest costs whose user code runs on the processor itself.

use std::hint::black_box;
use std::time::Instant;

use memmap2::MmapMut;
use virtbench_record::CrossingCost;

/// Batches, of which the median counts: in few of them somebody else has the processor.
const BATCHES: usize = 9;
/// System calls in a batch.
const CALLS: u32 = 40;
/// Pages in a batch.
const PAGES: u32 = 32;
/// Bytes of the smallest page of any system; larger ones make fewer faults, so that each is told to be cheaper than it is.
const PAGE_BYTES: usize = 4096;

/// Measures both costs here and now, in some ten milliseconds at most.
#[must_use]
pub fn crossing_cost() -> CrossingCost {
    CrossingCost { system_call_ns: median_ns(CALLS, calls), page_fault_ns: median_ns(PAGES, faults) }
}

/// Nanoseconds of one of the things of which a batch has so many; 0 where there is no memory for them.
fn median_ns(count: u32, batch: fn() -> Option<u128>) -> u64 {
    let mut batches: Vec<u128> = (0..BATCHES).filter_map(|_| batch()).collect();
    batches.sort_unstable();
    u64::try_from(batches.get(batches.len() / 2).copied().unwrap_or_default() / u128::from(count))
        .unwrap_or(u64::MAX)
}

/// A call that does nothing but cross, and that no library answers by itself.
fn calls() -> Option<u128> {
    let begun = Instant::now();
    for _ in 0..CALLS {
        black_box(cross());
    }
    Some(begun.elapsed().as_nanos())
}

#[cfg(unix)]
fn cross() -> bool {
    rustix::process::getppid().is_some()
}

#[cfg(windows)]
fn cross() -> bool {
    crate::windows::cross()
}

/// First writes to pages that the kernel has just given.
fn faults() -> Option<u128> {
    let mut fresh = MmapMut::map_anon(PAGE_BYTES * PAGES as usize).ok()?;
    let begun = Instant::now();
    for page in fresh.chunks_mut(PAGE_BYTES) {
        if let Some(first) = page.first_mut() {
            *first = black_box(1);
        }
    }
    Some(begun.elapsed().as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_costs_more_than_nothing_and_less_than_a_disk() {
        let cost = crossing_cost();
        assert!((10..1_000_000).contains(&cost.system_call_ns), "{cost:?}");
        assert!((50..1_000_000).contains(&cost.page_fault_ns), "{cost:?}");
    }
}

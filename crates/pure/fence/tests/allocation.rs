//! A fence that has grown to its work takes no more memory: steady state, counted by an allocator.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // other tests use more of it
mod steady;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use virtbench_fence::SchedulerConfig;

struct Counting;

thread_local! {
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory came from `alloc` above with the same layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations while the last `measured` requests are answered.
fn allocations(scheduler: SchedulerConfig, warm_up: u64, measured: u64) -> usize {
    let mut before = None;
    steady::run(steady::config(scheduler, 4096), warm_up + measured, 100, |answered, _| {
        if answered >= warm_up {
            before.get_or_insert_with(|| CALLS.get());
        }
    });
    CALLS.get() - before.unwrap()
}

#[test]
fn nothing_is_allocated_once_a_fence_has_grown_to_its_work() {
    for scheduler in [SchedulerConfig::Fifo, steady::slots()] {
        let calls = allocations(scheduler.clone(), 200_000, 50_000);
        assert_eq!(calls, 0, "{scheduler:?}");
    }
}

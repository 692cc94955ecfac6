use super::*;
use crate::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use crate::types::{DeviceOp, DiskId, IoId};
use crate::{ConfigError, Device};

const MS: u64 = 1_000_000;

/// Every slow access 8 ms, a fast batch 1 ms an I/O.
fn config(owners: &[u16]) -> SlotsConfig {
    let slow = SlowPredictor::new(vec![Knot { distance_bytes: 0, access_ns: 8e6 }], 0);
    SlotsConfig {
        owners: owners.iter().map(|&disk| SlotOwner::Disk(DiskId(disk))).collect(),
        slot_ns: 20 * MS,
        predict: Predictors { slow, fast: FastPredictor { base_ns: 0.0, per_io_ns: 1e6 } },
        max_batch: 64,
    }
}

fn io(id: u64, disk: u16, device: Device) -> QueuedIo {
    let offset_bytes = id << 20;
    QueuedIo { io: IoId(id), disk: DiskId(disk), device, op: DeviceOp::Read, offset_bytes, len_bytes: 4096 }
}

fn at(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

fn picks(slots: &mut Slots, now: Time) -> Vec<u64> {
    std::iter::from_fn(|| slots.pick(now)).map(|io| io.io.0).collect()
}

#[test]
fn the_largest_batch_that_fits_is_sent_in_the_order_of_a_scan() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    for id in [9, 3, 7] {
        slots.enqueue(at(0), io(id, 0, Device::Slow));
    }
    assert_eq!(picks(&mut slots, at(0)), [3, 9]);
    assert_eq!(slots.queued(), 1);
}

#[test]
fn a_slot_passes_unused_though_others_wait() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    slots.enqueue(at(3), io(1, 1, Device::Slow));
    assert_eq!(picks(&mut slots, at(3)), [0_u64; 0]);
    assert_eq!(slots.next_deadline(), Some(at(20)));
    assert_eq!(picks(&mut slots, at(20)), [1]);
}

#[test]
fn what_ends_early_is_credited() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    for id in 1..=6 {
        slots.enqueue(at(0), io(id, 0, Device::Slow));
    }
    assert_eq!(picks(&mut slots, at(0)), [1, 2]);
    for id in [1, 2] {
        slots.completed(at(16), io(id, 0, Device::Slow));
    }
    // The third does not fit into 4 ms: disk 1's slot begins now, and the next of disk 0 lasts 24 ms.
    assert_eq!(picks(&mut slots, at(16)), [0_u64; 0]);
    assert_eq!(slots.next_deadline(), Some(at(36)));
    assert_eq!(picks(&mut slots, at(36)), [3, 4, 5]);
    assert_eq!(slots.next_deadline(), Some(at(60)));
}

#[test]
fn an_overrun_is_debited_and_sends_fast_requests_one_at_a_time() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    slots.enqueue(at(10), io(1, 0, Device::Slow));
    assert_eq!(picks(&mut slots, at(10)), [1]);
    for id in 2..=5 {
        slots.enqueue(at(20), io(id, 0, Device::Fast));
    }
    assert_eq!(picks(&mut slots, at(20)), [2]);
    assert_eq!(slots.next_deadline(), None);
    slots.completed(at(21), io(2, 0, Device::Fast));
    assert_eq!(picks(&mut slots, at(21)), [3]);
    slots.completed(at(22), io(1, 0, Device::Slow));
    assert_eq!(picks(&mut slots, at(22)), [0_u64; 0]);
    slots.completed(at(25), io(3, 0, Device::Fast));
    // 5 ms over: disk 1 has 25 to 45, disk 0 then 45 to 60.
    assert_eq!(picks(&mut slots, at(25)), [0_u64; 0]);
    assert_eq!(slots.next_deadline(), Some(at(45)));
    assert_eq!(picks(&mut slots, at(45)), [4, 5]);
    assert_eq!(slots.next_deadline(), None);
    slots.enqueue(at(46), io(6, 0, Device::Slow));
    assert_eq!(slots.next_deadline(), Some(at(60)));
}

#[test]
fn an_access_longer_than_a_slot_is_served_out_of_saved_credit() {
    let mut slots = Slots::new(SlotsConfig { slot_ns: 5 * MS, ..config(&[0, 1]) }, 2);
    slots.enqueue(at(0), io(1, 0, Device::Slow));
    assert_eq!(picks(&mut slots, at(0)), [0_u64; 0]);
    assert_eq!(slots.next_deadline(), Some(at(5)));
    assert_eq!(picks(&mut slots, at(5)), [1]);
}

#[test]
fn idle_time_is_caught_up_with_at_once_and_keeps_the_rotation() {
    let mut slots = Slots::new(config(&[0, 1, 2]), 3);
    assert_eq!(slots.next_deadline(), None);
    slots.enqueue(at(60 * 1_000_000 + 25), io(1, 0, Device::Fast));
    assert_eq!(slots.next_deadline(), Some(at(60 * 1_000_000 + 40)));
    assert_eq!(picks(&mut slots, at(60 * 1_000_000 + 40)), [0_u64; 0]);
    assert_eq!(picks(&mut slots, at(60 * 1_000_000 + 60)), [1]);
}

#[test]
fn disks_without_slots_share_the_shared_one() {
    let mut shared = config(&[0, 1]);
    shared.owners[1] = SlotOwner::Shared;
    assert_eq!(shared.validate(4), Ok(()));
    let mut slots = Slots::new(shared, 4);
    for disk in [0, 2, 3] {
        slots.enqueue(at(20), io(u64::from(disk), disk, Device::Fast));
    }
    assert_eq!(picks(&mut slots, at(20)), [2, 3]);
}

#[test]
fn rotations_that_cannot_serve_are_refused() {
    assert_eq!(config(&[]).validate(1), Err(ConfigError::NoSlots));
    assert_eq!(SlotsConfig { slot_ns: 0, ..config(&[0]) }.validate(1), Err(ConfigError::NoSlots));
    assert_eq!(config(&[0, 2]).validate(2), Err(ConfigError::SlotOwnerUnknown { slot: 1, disk: 2 }));
    assert_eq!(config(&[0, 0]).validate(2), Err(ConfigError::DiskWithoutSlot { disk: 1, slots: 2 }));
    let short = SlotsConfig { slot_ns: MS / 2, ..config(&[0]) };
    assert_eq!(short.validate(1), Err(ConfigError::SlotTooShort { slot_ns: MS / 2, needs_ns: MS }));
}

#[test]
fn slots_given_anew_count_from_the_next_rotation_on_and_nothing_queued_is_lost() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    for id in 1..=3 {
        slots.enqueue(at(0), io(id, 0, Device::Slow));
        slots.enqueue(at(0), io(10 + id, 1, Device::Slow));
    }
    assert_eq!(picks(&mut slots, at(0)), [1, 2]);
    // Disk 1 gets two slots of three, each of 10 ms.
    let other = SlotsConfig { slot_ns: 10 * MS, ..config(&[1, 0, 1]) };
    assert!(slots.reconfigure(&SchedulerConfig::Slots(other)));
    for id in [1, 2] {
        slots.completed(at(20), io(id, 0, Device::Slow));
    }
    // The old rotation goes to its end: disk 1 has 20 to 40.
    assert_eq!(picks(&mut slots, at(20)), [11, 12]);
    for id in [11, 12] {
        slots.completed(at(38), io(id, 1, Device::Slow));
    }
    // The third does not fit into what is left, which is credited: disk 1 now has 38 to 50, then disk 0 50 to 60.
    assert_eq!(picks(&mut slots, at(38)), [13]);
    assert_eq!((slots.clock.current(), slots.clock.ends(), slots.queued()), (0, at(50), 1));
    slots.completed(at(50), io(13, 1, Device::Slow));
    assert_eq!(picks(&mut slots, at(50)), [3]);
    assert_eq!((slots.clock.current(), slots.clock.ends(), slots.queued()), (1, at(60), 0));
    let fifo = SchedulerConfig::Fifo;
    assert!(!slots.reconfigure(&fifo), "another scheduler is no other configuration");
}

#[test]
fn slots_given_anew_while_nothing_happens_are_there_when_something_does() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    assert!(slots.reconfigure(&SchedulerConfig::Slots(config(&[1, 1, 0]))));
    // The old rotation ends at 40; 100 is the end of the new one's third slot.
    slots.enqueue(at(85), io(1, 0, Device::Slow));
    assert_eq!((slots.clock.current(), slots.clock.ends()), (2, at(100)));
    assert_eq!(picks(&mut slots, at(85)), [1]);
}

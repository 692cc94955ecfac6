use super::*;
use crate::peers::Cap;
use crate::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use crate::types::{DeviceOp, DiskId, IoId};
use crate::{ConfigError, Device, PredictionErrors, SlotAccount, Tally};

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
        slots.completed(at(16), &io(id, 0, Device::Slow));
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
    slots.completed(at(21), &io(2, 0, Device::Fast));
    assert_eq!(picks(&mut slots, at(21)), [3]);
    slots.completed(at(22), &io(1, 0, Device::Slow));
    assert_eq!(picks(&mut slots, at(22)), [0_u64; 0]);
    slots.completed(at(25), &io(3, 0, Device::Fast));
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

fn account(slots: &Slots, disk: u16) -> SlotAccount {
    match slots.account(at(0), DiskId(disk)) {
        Some(Account::Slots(account)) => account,
        other => panic!("{other:?}"),
    }
}

fn tally(count: u64, sum_ms: u64) -> Tally {
    Tally { count, sum_ns: sum_ms * MS }
}

fn errors(batches: u64, predicted_ms: u64, measured_ms: u64, absolute_ms: u64) -> PredictionErrors {
    let [predicted_ns, measured_ns, absolute_ns] = [predicted_ms, measured_ms, absolute_ms].map(|ms| ms * MS);
    PredictionErrors { batches, predicted_ns, measured_ns, absolute_ns }
}

#[test]
fn the_books_of_a_rotation_are_those_reckoned_by_hand() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    for id in 1..=6 {
        slots.enqueue(at(0), io(id, 0, Device::Slow));
    }
    // 16 ms are predicted and 13 needed; the third access takes 8 and only 7 are left, which are credited.
    assert_eq!(picks(&mut slots, at(0)), [1, 2]);
    slots.completed(at(12), &io(1, 0, Device::Slow));
    slots.completed(at(13), &io(2, 0, Device::Slow));
    assert_eq!(picks(&mut slots, at(13)), [0_u64; 0]);
    let first = SlotAccount {
        slots: 1,
        used: 1,
        credit: tally(1, 7),
        balance_ns: 7_000_000,
        predictions: [errors(1, 16, 13, 3), errors(0, 0, 0, 0)],
        ..SlotAccount::default()
    };
    assert_eq!(account(&slots, 0), first);
    assert_eq!(account(&slots, 1), SlotAccount { slots: 1, ..SlotAccount::default() });
    // Disk 1's slot passes from 13 to 33. Then 27 ms, of which 24 are predicted to be used; they become 30.
    assert_eq!(picks(&mut slots, at(33)), [3, 4, 5]);
    assert_eq!((account(&slots, 0).balance_ns, account(&slots, 0).slots), (0, 2));
    for id in 3..=5 {
        slots.completed(at(63), &io(id, 0, Device::Slow));
    }
    let second = SlotAccount {
        slots: 2,
        used: 2,
        credit: tally(1, 7),
        overrun: tally(1, 3),
        balance_ns: -3_000_000,
        predictions: [errors(2, 40, 43, 9), errors(0, 0, 0, 0)],
    };
    assert_eq!(account(&slots, 0), second);
    assert_eq!(account(&slots, 0).prediction(Device::Slow).mean_ns(), Some(1.5e6));
    assert_eq!(account(&slots, 0).prediction(Device::Slow).mean_absolute_ns(), Some(4.5e6));
    assert_eq!(account(&slots, 0).prediction(Device::Fast).mean_ns(), None);
}

#[test]
fn batches_of_the_fast_device_are_booked_beside_those_of_the_slow_one() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    slots.enqueue(at(1), io(1, 0, Device::Slow));
    for id in 2..=4 {
        slots.enqueue(at(1), io(id, 0, Device::Fast));
    }
    assert_eq!(picks(&mut slots, at(1)), [1, 2, 3, 4]);
    for id in 2..=4 {
        slots.completed(at(6), &io(id, 0, Device::Fast));
    }
    slots.completed(at(9), &io(1, 0, Device::Slow));
    let booked = account(&slots, 0);
    assert_eq!(booked.predictions, [errors(1, 8, 8, 0), errors(1, 3, 5, 2)]);
    assert_eq!((booked.slots, booked.used, booked.balance_ns), (1, 1, 0));
}

#[test]
fn slots_that_pass_while_nothing_happens_are_counted_when_something_does() {
    let mut slots = Slots::new(config(&[0, 1, 2]), 3);
    slots.enqueue(at(60 * 1_000_000 + 25), io(1, 0, Device::Fast));
    let slots_of = |disk| (account(&slots, disk).slots, account(&slots, disk).used);
    assert_eq!([0, 1, 2].map(slots_of), [(1_000_001, 0), (1_000_001, 0), (1_000_000, 0)]);
    assert_eq!(slots.account(at(0), DiskId(3)), None);
}

#[test]
fn a_debit_that_idleness_forgives_is_off_the_books() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    slots.enqueue(at(0), io(1, 0, Device::Fast));
    assert_eq!(picks(&mut slots, at(0)), [1]);
    slots.completed(at(90), &io(1, 0, Device::Fast));
    assert_eq!((account(&slots, 0).overrun, account(&slots, 0).balance_ns), (tally(1, 70), -70_000_000));
    // Disk 1 has 90 to 110; disk 0's slot then is 50 ms short of nothing.
    assert_eq!(picks(&mut slots, at(110)), [0_u64; 0]);
    slots.enqueue(at(111), io(2, 1, Device::Fast));
    assert_eq!(account(&slots, 0).balance_ns, -50_000_000);
    assert_eq!(picks(&mut slots, at(111)), [2]);
    slots.completed(at(112), &io(2, 1, Device::Fast));
    slots.enqueue(at(10_000), io(3, 1, Device::Fast));
    assert_eq!((account(&slots, 0).overrun, account(&slots, 0).balance_ns), (tally(1, 70), 0));
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
    assert!(slots.reconfigure(&other));
    for id in [1, 2] {
        slots.completed(at(20), &io(id, 0, Device::Slow));
    }
    // The old rotation goes to its end: disk 1 has 20 to 40.
    assert_eq!(picks(&mut slots, at(20)), [11, 12]);
    for id in [11, 12] {
        slots.completed(at(38), &io(id, 1, Device::Slow));
    }
    // The third does not fit into what is left, which is credited: disk 1 now has 38 to 50, then disk 0 50 to 60.
    assert_eq!(picks(&mut slots, at(38)), [13]);
    assert_eq!((slots.clock.current(), slots.clock.ends(), slots.queued()), (0, at(50), 1));
    // The books go on with their disks.
    assert_eq!((account(&slots, 0).slots, account(&slots, 1).slots), (1, 2));
    assert_eq!((account(&slots, 1).credit, account(&slots, 1).balance_ns), (tally(1, 2), 0));
    slots.completed(at(50), &io(13, 1, Device::Slow));
    assert_eq!(picks(&mut slots, at(50)), [3]);
    assert_eq!((slots.clock.current(), slots.clock.ends(), slots.queued()), (1, at(60), 0));
    let caps: Vec<Cap> = Vec::new();
    assert!(!slots.reconfigure(&caps), "another scheduler is no other configuration");
}

#[test]
fn slots_given_anew_while_nothing_happens_are_there_when_something_does() {
    let mut slots = Slots::new(config(&[0, 1]), 2);
    assert!(slots.reconfigure(&config(&[1, 1, 0])));
    // The old rotation ends at 40; 100 is the end of the new one's third slot.
    slots.enqueue(at(85), io(1, 0, Device::Slow));
    assert_eq!((slots.clock.current(), slots.clock.ends()), (2, at(100)));
    assert_eq!(picks(&mut slots, at(85)), [1]);
}

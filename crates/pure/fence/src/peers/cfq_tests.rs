//! CFQ against what the kernel's documentation says of it.

use super::{Cfq, CfqConfig};
use crate::scheduler::{QueuedIo, Scheduler};
use crate::types::{Device, DeviceOp, DiskId, IoId, Time};

const MS: u64 = 1_000_000;
const GIB: u64 = 1 << 30;

fn at(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

fn io(id: u64, disk: u16, op: DeviceOp, offset_bytes: u64) -> QueuedIo {
    let device = Device::Slow;
    QueuedIo { io: IoId(id), disk: DiskId(disk), device, op, offset_bytes, len_bytes: 4096 }
}

fn read(id: u64, disk: u16, offset_bytes: u64) -> QueuedIo {
    io(id, disk, DeviceOp::Read, offset_bytes)
}

fn cfq(config: CfqConfig) -> Cfq {
    Cfq::new(config, [1, 1])
}

/// Who is served, as disk and how many I/Os in a row, over `ms` in which each I/O takes `service_ms` and each of `disks` has
/// `deep` I/Os waiting at all times.
fn turns(cfq: &mut Cfq, disks: u16, deep: u64, ms: u64, service_ms: u64) -> Vec<(u16, u64)> {
    let mut id = 0;
    let mut ask = |cfq: &mut Cfq, now, disk: u16| {
        id += 1;
        cfq.enqueue(now, read(id, disk, u64::from(disk) * 10 * GIB + id * 4096));
    };
    for disk in 0..disks {
        (0..deep).for_each(|_| ask(cfq, at(0), disk));
    }
    let mut turns: Vec<(u16, u64)> = Vec::new();
    let mut now = at(0);
    while now < at(ms) {
        let picked = cfq.pick(now).expect("somebody always waits");
        match turns.last_mut() {
            Some((disk, times)) if *disk == picked.disk.0 => *times += 1,
            _ => turns.push((picked.disk.0, 1)),
        }
        now = now.after(service_ms * MS);
        ask(cfq, now, picked.disk.0);
        cfq.completed(now, &picked);
    }
    turns
}

#[test]
fn each_process_has_a_slice_of_100_ms_in_turn() {
    // A slice begins when its first I/O completes: one and ten of 10 ms.
    let turns = turns(&mut cfq(CfqConfig::per_disk(3)), 3, 8, 3_000, 10);
    let whole = &turns[..turns.len() - 1];
    assert!(whole.len() > 24);
    for (place, (disk, ios)) in whole.iter().enumerate() {
        assert_eq!((usize::from(*disk), *ios), (place % 3, 11), "turn {place} of {turns:?}");
    }
}

#[test]
fn a_level_of_priority_is_a_fifth_of_a_slice() {
    let config = CfqConfig { priorities: vec![0, 4, 7], ..CfqConfig::per_disk(3) };
    let turns = turns(&mut cfq(config), 3, 8, 10_000, 10);
    for (disk, ios) in &turns[..turns.len() - 1] {
        // 180, 100 and 40 ms.
        assert_eq!(*ios, [19, 11, 5][usize::from(*disk)], "{turns:?}");
    }
}

#[test]
fn disks_of_one_process_share_a_queue() {
    let config = CfqConfig { processes: vec![0, 0], ..CfqConfig::per_disk(2) };
    let mut cfq = cfq(config);
    cfq.enqueue(at(0), read(1, 0, 50 << 20));
    cfq.enqueue(at(0), read(2, 1, 10 << 20));
    cfq.enqueue(at(0), read(3, 0, 90 << 20));
    let mut next = |now| {
        let io = cfq.pick(at(now)).unwrap();
        cfq.completed(at(now + 1), &io);
        io.io.0
    };
    assert_eq!([next(0), next(1), next(2)], [2, 1, 3], "upwards by address");
}

#[test]
fn a_short_way_back_counts_twice_and_a_long_one_is_not_gone() {
    let order = |offsets: [u64; 2]| {
        let mut cfq = cfq(CfqConfig::per_disk(1));
        cfq.enqueue(at(0), read(1, 0, GIB));
        let first = cfq.pick(at(0)).unwrap();
        cfq.completed(at(1), &first);
        for (id, offset) in (2..).zip(offsets) {
            cfq.enqueue(at(1), read(id, 0, offset));
        }
        cfq.pick(at(1)).unwrap().offset_bytes
    };
    let (near, back) = (GIB + (4 << 20), GIB - (1 << 20));
    assert_eq!(order([near, back]), back);
    assert_eq!(order([near, GIB - (3 << 20)]), near, "3 MiB back are as far as 6 ahead");
    assert_eq!(order([GIB + (60 << 20), GIB - (20 << 20)]), GIB + (60 << 20), "more than 16 MiB back");
}

/// One I/O at a time, the next `think_ms` after the last: whether the device was kept for it although another waited.
fn kept(think_ms: u64, step: u64) -> bool {
    let mut cfq = cfq(CfqConfig::per_disk(2));
    let mut now = 0;
    for id in 0..10 {
        cfq.enqueue(at(now), read(id, 0, id * step));
        let io = cfq.pick(at(now)).unwrap();
        now += 1;
        cfq.completed(at(now), &io);
        now += think_ms;
    }
    cfq.enqueue(at(now), read(10, 0, 10 * step));
    let own = cfq.pick(at(now)).unwrap();
    cfq.enqueue(at(now), read(11, 1, 100 * GIB));
    cfq.completed(at(now + 1), &own);
    let waits = cfq.pick(at(now + 1)).is_none();
    if waits {
        let until = cfq.next_deadline().expect("the other waits for it");
        assert_eq!(until, at(now + 1 + if step > 8 << 20 { 2 } else { 8 }));
        assert_eq!(cfq.pick(until).unwrap().io, IoId(11));
    }
    waits
}

#[test]
fn the_device_is_kept_for_who_soon_asks_again() {
    assert!(kept(1, 4096), "think time of 1 ms, side by side");
    assert!(kept(1, 2 * GIB), "think time of 1 ms, far apart: 2 ms");
    assert!(!kept(12, 4096), "a process that thinks for 12 ms");
}

#[test]
fn a_drive_without_seeks_is_not_kept() {
    let mut cfq = cfq(CfqConfig { seeks: [false, false], ..CfqConfig::per_disk(2) });
    cfq.enqueue(at(0), read(1, 0, 0));
    let first = cfq.pick(at(0)).unwrap();
    cfq.enqueue(at(0), read(2, 1, 100 * GIB));
    cfq.completed(at(1), &first);
    assert_eq!(cfq.pick(at(1)).unwrap().io, IoId(2));
}

#[test]
fn what_nobody_waits_for_shares_a_queue_and_gives_way() {
    let mut cfq = cfq(CfqConfig { buffered_writes: true, ..CfqConfig::per_disk(2) });
    cfq.enqueue(at(0), io(1, 0, DeviceOp::Write, 0));
    cfq.enqueue(at(0), io(2, 1, DeviceOp::Write, 4096));
    let first = cfq.pick(at(0)).unwrap();
    assert_eq!(first.io, IoId(1));
    cfq.enqueue(at(1), read(3, 0, GIB));
    cfq.completed(at(2), &first);
    let second = cfq.pick(at(2)).unwrap();
    assert_eq!(second.io, IoId(3), "a read takes the turn of write-back");
    cfq.completed(at(4), &second);
    assert_eq!(cfq.pick(at(4)), None, "the device is kept for the reader");
    assert_eq!(cfq.pick(cfq.next_deadline().unwrap()).unwrap().io, IoId(2));
}

#[test]
fn the_oldest_goes_first_once_a_slice_when_it_has_waited_too_long() {
    let mut cfq = cfq(CfqConfig::per_disk(1));
    cfq.enqueue(at(0), read(1, 0, 0));
    let first = cfq.pick(at(0)).unwrap();
    cfq.enqueue(at(0), read(2, 0, 50 * GIB));
    (3..40).for_each(|id| cfq.enqueue(at(1), read(id, 0, id * 4096)));
    cfq.completed(at(1), &first);
    let mut now = 1;
    let place = (2..40)
        .position(|_| {
            let io = cfq.pick(at(now)).unwrap();
            now += 10;
            cfq.completed(at(now), &io);
            io.io == IoId(2)
        })
        .unwrap();
    // The slice ends 100 ms after 1 ms; the next, from 111 ms on, begins before 125 ms are over, the one behind does not.
    assert!((20..24).contains(&place), "{place}");
}

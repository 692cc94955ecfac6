use super::*;
use crate::scheduler::{QueuedIo, Scheduler};
use crate::types::{Account, Device, DeviceOp, DiskId, IoId, Time, TokenAccount};

const MS: u64 = 1_000_000;

fn io(id: u64, disk: u16, offset_bytes: u64, len_bytes: u32) -> QueuedIo {
    let (device, op) = (Device::Slow, DeviceOp::Read);
    QueuedIo { io: IoId(id), disk: DiskId(disk), device, op, offset_bytes, len_bytes }
}

fn at(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

/// Serves for `ms`, an I/O of `service_ms` at a time; each disk asks again at once. I/Os of each disk.
fn serve(scheduler: &mut dyn Scheduler, disks: &[u32], ms: u64, service_ms: u64) -> Vec<u64> {
    let mut served = vec![0; disks.len()];
    let mut now = at(0);
    let mut id = 0;
    for (disk, &len) in (0..).zip(disks) {
        for _ in 0..4 {
            id += 1;
            scheduler.enqueue(now, io(id, disk, id * 4096, len));
        }
    }
    while now < at(ms) {
        let Some(picked) = scheduler.pick(now) else {
            let deadline = scheduler.next_deadline().expect("work is held back without end");
            assert!(deadline > now, "a deadline that has passed and nothing to pick");
            now = deadline;
            continue;
        };
        now = now.after(service_ms * MS);
        served[picked.disk.index()] += 1;
        id += 1;
        scheduler.enqueue(now, io(id, picked.disk.0, id * 4096, picked.len_bytes));
        scheduler.completed(now, &picked);
    }
    served
}

#[test]
fn the_elevator_goes_up_and_starts_again() {
    let mut elevator = Elevator::new([1, 1]);
    for (id, offset) in [(1, 50), (2, 10), (3, 90)] {
        elevator.enqueue(at(0), io(id, 0, offset, 512));
    }
    let mut next = |arrives: Option<(u64, u64)>| {
        let picked = elevator.pick(at(0)).unwrap();
        assert_eq!(elevator.pick(at(0)), None, "deeper than allowed");
        if let Some((id, offset)) = arrives {
            elevator.enqueue(at(0), io(id, 0, offset, 512));
        }
        elevator.completed(at(0), &picked);
        picked.io.0
    };
    // 60 joins the sweep; 10 again, where the head is, waits for the next.
    assert_eq!(
        [next(Some((4, 60))), next(Some((5, 10))), next(None), next(None), next(None)],
        [2, 1, 4, 3, 5]
    );
}

#[test]
fn a_cap_holds_alone_and_in_company() {
    let cap = Cap { iops: Some(50), bytes_per_s: None, burst_ns: 0 };
    let open = Cap { iops: None, ..cap };
    let alone = serve(&mut TokenBucket::new(&[cap], [1, 1]), &[4096], 10_000, 1);
    let both = serve(&mut TokenBucket::new(&[cap, open], [1, 1]), &[4096, 4096], 10_000, 1);
    assert_eq!(alone, [500]);
    assert!((498..=501).contains(&both[0]) && both[1] > 9000, "{both:?}");
}

#[test]
fn bandwidth_is_capped_and_bursts_are_saved_up() {
    let cap = Cap { iops: None, bytes_per_s: Some(1 << 20), burst_ns: 0 };
    assert_eq!(serve(&mut TokenBucket::new(&[cap], [1, 1]), &[65536], 10_000, 1), [160]);
    let burst = Cap { burst_ns: 1000 * MS, ..cap };
    let served = serve(&mut TokenBucket::new(&[burst], [1, 1]), &[65536], 10_000, 1);
    assert!((175..=178).contains(&served[0]), "{served:?}");
}

#[test]
fn mclock_with_reservation_equal_to_limit_gives_exactly_that() {
    let alone = serve(&mut MClock::new(&[Shares::exactly(40)], [1, 1]), &[4096], 10_000, 2);
    let shares = [Shares::exactly(40), Shares::exactly(100)];
    let both = serve(&mut MClock::new(&shares, [1, 1]), &[4096; 2], 10_000, 2);
    assert!((399..=401).contains(&alone[0]), "{alone:?}");
    assert!((398..=401).contains(&both[0]) && (995..=1001).contains(&both[1]), "{both:?}");
}

#[test]
fn mclock_shares_by_weight_above_what_is_reserved() {
    let shares = |reservation_iops, weight| Shares { reservation_iops, limit_iops: 10_000, weight };
    let served = serve(&mut MClock::new(&[shares(10, 1), shares(10, 3)], [1, 1]), &[4096; 2], 10_000, 2);
    assert!((served[1] as f64 / served[0] as f64 - 3.0).abs() < 0.1, "{served:?}");
    let served = serve(&mut MClock::new(&[shares(300, 1), shares(10, 9)], [1, 1]), &[4096; 2], 10_000, 2);
    assert!((2995..=3005).contains(&served[0]), "{served:?}");
}

#[test]
fn sectors_are_shared_by_weight_whatever_the_size_of_requests() {
    let fair = |weights: &[u64]| FairConfig { weights: weights.to_vec(), budget_sectors: 64, idle_ns: 0 };
    let served = serve(&mut FairQueue::new(fair(&[1, 1]), [1, 1]), &[4096, 32768], 10_000, 1);
    assert!((served[0] as f64 / served[1] as f64 - 8.0).abs() < 0.2, "{served:?}");
    let served = serve(&mut FairQueue::new(fair(&[1, 3]), [1, 1]), &[4096, 4096], 10_000, 1);
    assert!((served[1] as f64 / served[0] as f64 - 3.0).abs() < 0.1, "{served:?}");
}

#[test]
fn the_slow_device_is_kept_for_whom_it_serves() {
    let config = FairConfig { weights: vec![1, 1], budget_sectors: 64, idle_ns: 8 * MS };
    let mut fair = FairQueue::new(config, [1, 1]);
    fair.enqueue(at(0), io(1, 0, 0, 4096));
    fair.enqueue(at(0), io(2, 1, 0, 4096));
    let first = fair.pick(at(0)).unwrap();
    fair.completed(at(5), &first);
    assert_eq!(fair.pick(at(5)), None);
    assert_eq!(fair.next_deadline(), Some(at(13)));
    fair.enqueue(at(9), io(3, 0, 4096, 4096));
    let second = fair.pick(at(9)).unwrap();
    assert_eq!(second.io, IoId(3));
    fair.completed(at(10), &second);
    assert_eq!(fair.pick(at(18)).unwrap().io, IoId(2));
}

#[test]
fn tokens_are_what_is_saved_of_the_rate() {
    let cap = Cap { iops: Some(100), bytes_per_s: None, burst_ns: 20 * MS };
    let mut bucket = TokenBucket::new(&[cap, Cap { iops: None, ..cap }], [8, 8]);
    let tokens = |bucket: &TokenBucket, ms: u64, disk: u16| match bucket.account(at(ms), DiskId(disk)) {
        Some(Account::Tokens(TokenAccount { ios_ns, bytes_ns: None })) => ios_ns.map(|ns| ns / 1_000_000),
        other => panic!("{other:?}"),
    };
    assert_eq!(tokens(&bucket, 0, 0), Some(20));
    for id in 0..4 {
        bucket.enqueue(at(0), io(id, 0, 0, 4096));
    }
    // 10 ms each: two out of what is saved, the third on credit.
    assert_eq!(std::iter::from_fn(|| bucket.pick(at(0))).count(), 3);
    assert_eq!((tokens(&bucket, 0, 0), tokens(&bucket, 7, 0)), (Some(-10), Some(-3)));
    assert_eq!((tokens(&bucket, 100, 0), tokens(&bucket, 0, 1)), (Some(20), None));
    assert_eq!(MClock::new(&[Shares::exactly(5)], [8, 8]).account(at(0), DiskId(0)), None);
}

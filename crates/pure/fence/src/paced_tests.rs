use super::*;
use crate::predict::{FastPredictor, Knot, Predictors, SlowPredictor};
use crate::types::{DeviceOp, DiskId, IoId, Tally};

const MS: u64 = 1_000_000;

/// Every slow access is predicted at 10 ms, every fast one at 1 ms.
fn config(classes: Vec<Class>) -> PacedConfig {
    let knot = Knot { distance_bytes: 0, access_ns: 10.0 * MS as f64 };
    PacedConfig {
        classes,
        predict: Predictors {
            slow: SlowPredictor::new(vec![knot], 0),
            fast: FastPredictor { base_ns: 0.0, per_io_ns: MS as f64 },
        },
        reserve: 1.0,
        due: [Due::AfterFinish(5 * MS), Due::AfterFinish(0)],
        burst_ns: 0,
        window_ns: 0,
        guard_ns: Some([8 * MS, 0]),
    }
}

fn io(id: u64, disk: u16, offset_bytes: u64) -> QueuedIo {
    let (device, op) = (Device::Slow, DeviceOp::Read);
    QueuedIo { io: IoId(id), disk: DiskId(disk), device, op, offset_bytes, len_bytes: 4096 }
}

fn at(ms: u64) -> Time {
    Time::from_ns(ms * MS)
}

const HALF: Class = Class::Predictable(0.5);

/// Serves what `arrivals` (ms, disk) bring, each access in 4 ms. When each is answered, in ms.
fn answered(config: PacedConfig, arrivals: &[(u64, u16)]) -> Vec<u64> {
    let mut paced = Paced::new(config, [1, 1]);
    let mut answers = vec![0; arrivals.len()];
    let mut next = 0;
    let mut serving: Option<(u64, QueuedIo)> = None;
    for now in 0..10_000 {
        if let Some((_, io)) = serving.take_if(|(done, _)| *done <= now) {
            paced.completed(at(now), &io);
            answers[usize::try_from(io.io.0).unwrap()] = paced.release_at(at(now), &io).ns() / MS;
        }
        while let Some(&(_, disk)) = arrivals.get(next).filter(|(when, _)| *when <= now) {
            paced.enqueue(
                at(now),
                io(next as u64, disk, (u64::from(disk) << 30) + ((next as u64 * 7919) << 13)),
            );
            next += 1;
        }
        if let Some(io) = paced.pick(at(now)) {
            assert!(serving.is_none(), "deeper than allowed");
            serving = Some((now + 4, io));
        }
    }
    assert_eq!(paced.queued(), 0);
    answers
}

#[test]
fn an_answer_is_given_when_the_virtual_device_would_have_it() {
    // 10 ms at half the speed, one after the other, and 5 ms: the device itself is done after 4 and 8 ms.
    assert_eq!(answered(config(vec![HALF, HALF]), &[(0, 0), (0, 0), (100, 0)]), [25, 45, 125]);
}

#[test]
fn answers_that_were_held_and_those_that_came_late_are_told_apart() {
    let mut paced = Paced::new(config(vec![HALF, Class::BestEffort]), [1, 1]);
    for (now, done) in [(0, 4), (100, 140)] {
        paced.enqueue(at(now), io(now, 0, now << 20));
        let picked = paced.pick(at(now)).unwrap();
        paced.completed(at(done), &picked);
    }
    // Both are due 25 ms after they came: one is held for 21, one is 15 late.
    let tally = |ms: u64| Tally { count: 1, sum_ns: ms * MS };
    let account = PacedAccount { ios: 2, held: tally(21), late: tally(15) };
    assert_eq!(paced.account(at(140), DiskId(0)), Some(Account::Paced(account)));
    assert_eq!(paced.account(at(140), DiskId(1)), None, "best effort is promised nothing");
}

#[test]
fn company_changes_nothing_as_long_as_the_devices_keep_up() {
    let own = [(0, 0), (3, 0), (50, 0), (51, 0), (90, 0)];
    let alone = answered(config(vec![HALF, HALF]), &own);
    let mut both: Vec<(u64, u16)> = own.into_iter().chain((0..12).map(|n| (n * 9, 1))).collect();
    both.sort_unstable();
    let answers = answered(config(vec![HALF, HALF]), &both);
    let of_own: Vec<u64> =
        both.iter().zip(answers).filter(|((_, disk), _)| *disk == 0).map(|(_, answer)| answer).collect();
    assert_eq!(of_own, alone);
}

#[test]
fn a_neighbour_that_asks_for_far_more_than_its_share_delays_by_one_access_at_most() {
    let flood: Vec<(u64, u16)> = (0..500).map(|_| (0, 1)).chain((1..20).map(|n| (n * 40, 0))).collect();
    let answers = answered(config(vec![HALF, HALF]), &flood);
    for (arrival, answer) in flood.iter().zip(&answers).skip(500) {
        assert_eq!(answer - arrival.0, 25, "{arrival:?}");
    }
}

#[test]
fn a_constant_delay_does_not_grow_with_the_predicted_time() {
    let constant = PacedConfig { due: [Due::AfterStart(12 * MS), Due::AfterStart(0)], ..config(vec![HALF]) };
    // The second may begin when the first is through the virtual device.
    assert_eq!(answered(constant.clone(), &[(0, 0), (0, 0)]), [12, 32]);
    let burst = PacedConfig { burst_ns: 20 * MS, ..constant };
    assert_eq!(answered(burst, &[(0, 0), (0, 0), (0, 0)]), [12, 12, 32]);
}

#[test]
fn best_effort_waits_for_quiet_and_is_answered_at_once() {
    let classes = vec![HALF, Class::BestEffort];
    // The device is quiet from 4 + 8 ms on; what is predictable and comes meanwhile is first.
    assert_eq!(answered(config(classes.clone()), &[(0, 0), (1, 1), (2, 1)]), [25, 16, 20]);
    assert_eq!(answered(config(classes.clone()), &[(0, 0), (1, 1), (10, 0)]), [25, 26, 45]);
    let open = PacedConfig { guard_ns: None, ..config(classes) };
    assert_eq!(answered(open, &[(0, 0), (1, 1), (10, 0)]), [25, 8, 45]);
}

#[test]
fn nearness_counts_only_among_what_is_due_at_about_the_same_time() {
    let order = |window_ms: u64| {
        let window_ns = window_ms * MS;
        let mut paced = Paced::new(PacedConfig { window_ns, ..config(vec![HALF]) }, [1, 1]);
        for (id, place) in [(0, 900), (1, 300), (2, 600)] {
            paced.enqueue(at(0), io(id, 0, place << 20));
        }
        let next = || {
            let io = paced.pick(at(0))?;
            paced.completed(at(0), &io);
            Some(io.io.0)
        };
        std::iter::from_fn(next).collect::<Vec<_>>()
    };
    // Due after 25, 45 and 65 ms.
    assert_eq!((order(0), order(20), order(40)), (vec![0, 1, 2], vec![1, 0, 2], vec![1, 2, 0]));
    assert_eq!(order(19), [0, 1, 2]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let refused = |config: PacedConfig| config.validate(2).unwrap_err().to_string();
    assert!(refused(config(vec![HALF])).contains("1 caps, shares or weights for 2 disks"));
    assert!(refused(config(vec![HALF, Class::Predictable(0.6)])).contains("more than the whole device"));
    assert!(refused(config(vec![HALF, Class::Predictable(0.0)])).contains("never be served"));
    assert!(refused(PacedConfig { reserve: 0.0, ..config(vec![HALF, HALF]) }).contains("reserve"));
    assert_eq!(config(vec![HALF, Class::BestEffort]).validate(2), Ok(()));
}

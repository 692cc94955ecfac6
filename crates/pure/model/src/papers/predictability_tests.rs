#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small positive invented numbers"
)]

use virtbench_record::{Provenance, Records, SetPlan, SetRecord, SetRole};

use super::*;
use crate::papers::tests::{executed_by, judged, verdict};
use crate::together::test_support::{load, member, provenance, record, set};

const UNFENCED: &str = "vhost-user-blk@fence,scheduler=pass-through";

const FENCED: &str = "vhost-user-blk@fence";

const LONGER: &str = "vhost-user-blk@fence,slot=30000us";

/// A light and a heavy VM alone, with 1 ms an operation, and together with so many times that; and what is left of their throughput.
fn sharing_disk(disk: &str, slower: [f64; 2], rate: f64) -> (Provenance, Records) {
    let shares = [8.0, 24.0];
    let named = |name: &str, role| {
        let mut set = set(name, role, 2, None);
        set.members.iter_mut().zip(shares).for_each(|(member, share)| member.share_percent = Some(share));
        set
    };
    let both = named("together", SetRole::Together);
    let alone = |vm: usize| SetPlan {
        members: vec![both.members[vm].clone()],
        ..named(&format!("vm{}-alone", vm + 1), SetRole::Alone)
    };
    let sets = vec![alone(0), alone(1), both.clone()];
    let mut facts = provenance(2, 1, sets);
    if let Plan::Neighbours(plan) = &facts.plan {
        facts.plan = Plan::Deviation(virtbench_record::ColocationPlan { disk: disk.into(), ..plan.clone() });
    }
    let of = |repetition: u32| -> [SetRecord; 3] {
        let one = |vm: usize, beside: bool| {
            let (slower, rate) = if beside { (slower[vm], rate) } else { (1.0, 1.0) };
            member(vm + 1, load(100.0 * rate, (1e6 * slower) as u64))
        };
        [
            record("vm1-alone", repetition, 50.0, vec![one(0, false)]),
            record("vm2-alone", repetition, 50.0, vec![one(1, false)]),
            record("together", repetition, 90.0, vec![one(0, true), one(1, true)]),
        ]
    };
    (executed_by("uml", facts), Records::Sets((0..3).flat_map(of).collect()))
}

#[test]
fn what_is_shared_without_a_fence_deviates_or_not() {
    assert_eq!(
        judged("deviation-is-endemic", &[sharing_disk(UNFENCED, [5.0, 3.0], 0.9)]),
        [("UML".into(), ClaimVerdict::Holds)]
    );
    assert_eq!(
        verdict("deviation-is-endemic", &[sharing_disk(UNFENCED, [5.0, 1.1], 0.9)]),
        ClaimVerdict::Fails
    );
    assert_eq!(
        judged("deviation-is-endemic", &[sharing_disk(FENCED, [5.0, 3.0], 0.9)]),
        [],
        "behind the fence"
    );
    let throttled = "vhost-user-blk@fence,scheduler=pass-through,throttle=on";
    assert_eq!(judged("deviation-is-endemic", &[sharing_disk(throttled, [5.0, 3.0], 0.9)]), []);
}

#[test]
fn response_times_deviate_more_than_throughput_or_less() {
    assert_eq!(
        verdict("response-deviates-more", &[sharing_disk(UNFENCED, [5.0, 3.0], 0.9)]),
        ClaimVerdict::Holds
    );
    assert_eq!(
        verdict("response-deviates-more", &[sharing_disk(UNFENCED, [1.1, 3.0], 0.5)]),
        ClaimVerdict::Fails
    );
}

#[test]
fn a_fence_takes_interference_down_by_an_order_or_by_less_and_needs_both_runs() {
    let with = |unfenced: [f64; 2], fenced: [f64; 2]| {
        [sharing_disk(UNFENCED, unfenced, 0.9), sharing_disk(FENCED, fenced, 1.0)]
    };
    assert_eq!(verdict("fence-by-an-order", &with([5.0, 3.0], [1.1, 1.5])), ClaimVerdict::Holds);
    assert_eq!(verdict("fence-by-an-order", &with([3.0, 9.0], [1.5, 1.1])), ClaimVerdict::Fails);
    assert_eq!(judged("fence-by-an-order", &[sharing_disk(FENCED, [1.1, 1.5], 1.0)]), []);
}

#[test]
fn fenced_vms_keep_their_bounds_or_not() {
    let run = |slower| [sharing_disk(FENCED, slower, 1.0)];
    assert_eq!(verdict("fenced-light-vm", &run([1.14, 3.0])), ClaimVerdict::Holds);
    assert_eq!(verdict("fenced-light-vm", &run([1.16, 1.0])), ClaimVerdict::Fails);
    assert_eq!(verdict("fenced-every-vm", &run([1.14, 1.18])), ClaimVerdict::Holds);
    assert_eq!(verdict("fenced-every-vm", &run([1.14, 1.20])), ClaimVerdict::Fails);
}

#[test]
fn longer_slots_deviate_less_or_more() {
    let with = |longer| [sharing_disk(LONGER, longer, 1.0), sharing_disk(FENCED, [1.2, 1.4], 1.0)];
    assert_eq!(verdict("longer-slots", &with([1.1, 1.2])), ClaimVerdict::Holds);
    assert_eq!(verdict("longer-slots", &with([1.4, 1.6])), ClaimVerdict::Fails);
}

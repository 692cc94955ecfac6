use std::collections::BTreeMap;

use super::*;
use crate::test_support::host;

fn footprint(kernel_s: f64, counts: &[(&str, u64)]) -> Footprint {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let cpu_ns = [0, (kernel_s * 1e9) as u64];
    let counts: BTreeMap<String, u64> =
        counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
    Footprint { elapsed_ns: 1_000_000_000, cpu_ns, copied_bytes: 0, counts }
}

/// One whose kernel code takes `factor` times as long on the subject.
fn reference(name: &str, factor: f64, counts: &[(&str, u64)]) -> Reference {
    let run = |per_second| ReferenceRun { per_second, footprint: footprint(0.8, &[]) };
    Reference {
        name: name.into(),
        workers: 1,
        reference: run(100.0),
        subject: run(100.0 / factor),
        counted: Some(footprint(0.8, counts)),
    }
}

fn costs(references: Vec<Reference>) -> Costs {
    Costs {
        costs_format: 3,
        host: host(2),
        adapter: "virtio-blk".into(),
        accelerator: "tcg".into(),
        vcpus: 2,
        costs: Vec::new(),
        crowded: Vec::new(),
        references,
    }
}

const OPENERS: &[(&str, u64)] = &[("call", 400_000), ("open", 80_000)];
const WAITERS: &[(&str, u64)] = &[("call", 40_000), ("switch", 60_000), ("disk", 30_000)];

fn two_kinds() -> Vec<Reference> {
    let openers = [4.8, 5.0, 5.2, 5.0].map(|factor| reference("opener", factor, OPENERS));
    let waiters = [19.0, 20.0, 21.0, 20.0].map(|factor| reference("waiter", factor, WAITERS));
    openers.into_iter().chain(waiters).collect()
}

#[test]
fn an_application_gets_the_factor_of_its_like() {
    let costs = costs(two_kinds());
    let factor = |counts| likened(&costs, &footprint(0.4, counts), &|_, _| 1.0).unwrap();
    // Half as much of everything in half the kernel time.
    let opener = factor(&[("call", 200_000), ("open", 40_000)]);
    assert!((opener.factor.ln.exp() / 5.0 - 1.0).abs() < 0.02, "{opener:?}");
    assert!(opener.nearest.iter().all(|name| name == "opener") && opener.references == 8);
    let waiter = factor(&[("call", 20_000), ("switch", 30_000), ("disk", 15_000)]);
    assert!((waiter.factor.ln.exp() / 20.0 - 1.0).abs() < 0.02, "{waiter:?}");
    // Each is predicted well by the others of its kind, so the interval is narrow; the mean of all would be off by 2.
    assert!(waiter.factor.deviation < 0.1, "{waiter:?}");
}

#[test]
fn crowded_runs_are_compared_as_if_alone() {
    let costs = costs(two_kinds());
    let crowding = |side: usize, _: f64| if side == 1 { 1.25 } else { 1.0 };
    let found = likened(&costs, &footprint(0.8, OPENERS), &crowding).unwrap();
    assert!((found.factor.ln.exp() / 4.0 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn without_counts_or_with_too_few_nothing_is_likened() {
    let all = two_kinds();
    assert!(likened(&costs(all.clone()), &footprint(0.8, &[]), &|_, _| 1.0).is_none());
    let few = costs(all[..7].to_vec());
    assert!(likened(&few, &footprint(0.8, OPENERS), &|_, _| 1.0).is_none());
    // Those that nobody counted, or with next to no kernel code, are none.
    let mut uncounted = all;
    uncounted[0].counted = None;
    uncounted[7].subject.footprint.cpu_ns[1] = 1_000_000;
    assert!(likened(&costs(uncounted), &footprint(0.8, OPENERS), &|_, _| 1.0).is_none());
}

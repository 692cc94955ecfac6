use virtbench_record::scaled_ns;

use super::*;
use crate::test_support::host;

/// So much user and kernel time in a second, the latter in these functions, percent.
fn footprint(cpu_s: [f64; 2], functions: &[(&str, u64)]) -> Footprint {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let cpu_ns = cpu_s.map(|seconds| (seconds * 1e9) as u64);
    let functions =
        functions.iter().map(|(name, percent)| ((*name).to_owned(), percent * 1_000_000)).collect();
    Footprint { elapsed_ns: 1_000_000_000, cpu_ns, functions, ..Footprint::default() }
}

/// One whose code takes so many times as long on the subject, user and kernel code.
fn reference(name: &str, [user, kernel]: [f64; 2], functions: &[(&str, u64)]) -> Reference {
    // As many operations in a second, of which each takes a machine ten times as large so long.
    let subject = footprint([0.02 * user, 0.03 * kernel], &[]);
    Reference {
        name: name.into(),
        workers: 1,
        reference: ReferenceRun { per_second: 100.0, footprint: footprint([0.2, 0.3], functions) },
        subject: ReferenceRun { per_second: 10.0, footprint: subject },
    }
}

fn costs(references: Vec<Reference>) -> Costs {
    Costs {
        left_out: Vec::new(),
        costs_format: 4,
        origin: None,
        host: host(2),
        adapter: "virtio-blk".into(),
        accelerator: "tcg".into(),
        vcpus: 2,
        costs: Vec::new(),
        crowded: Vec::new(),
        references,
    }
}

const OPENERS: &[(&str, u64)] = &[("link_path_walk", 70), ("ext4_lookup", 10), ("do_syscall_64", 20)];
const WAITERS: &[(&str, u64)] = &[("finish_task_switch", 60), ("iowrite16", 20), ("do_syscall_64", 20)];

fn two_kinds() -> Vec<Reference> {
    let openers = [4.8, 5.0, 5.2, 5.0].map(|kernel| reference("opener", [9.0, kernel], OPENERS));
    let waiters = [19.0, 20.0, 21.0, 20.0].map(|kernel| reference("waiter", [30.0, kernel], WAITERS));
    openers.into_iter().chain(waiters).collect()
}

#[test]
fn an_application_gets_the_factors_of_its_like() {
    let costs = costs(two_kinds());
    let found = |functions| likened(&costs, &footprint([0.25, 0.4], functions), &|_, _| 1.0).unwrap();
    // In other functions for the same.
    let opener = found(&[("__d_lookup_rcu", 35), ("path_openat", 45), ("entry_SYSCALL_64", 20)]);
    assert!((opener.kernel.ln.exp() / 5.0 - 1.0).abs() < 0.02, "{opener:?}");
    assert!((opener.user.unwrap().ln.exp() / 9.0 - 1.0).abs() < 0.02, "{opener:?}");
    assert!(opener.from.nearest.iter().all(|name| name == "opener") && opener.from.references == 8);
    let waiter = found(WAITERS);
    assert!((waiter.kernel.ln.exp() / 20.0 - 1.0).abs() < 0.02, "{waiter:?}");
    // Each is predicted well by the others of its kind, so the interval is narrow; the mean of all would be off by 2.
    assert!(waiter.kernel.deviation < 0.1, "{waiter:?}");
}

#[test]
fn a_program_that_computes_is_not_taken_for_one_that_starts_processes() {
    // What either asks of the kernel is the same; the share that it makes is not.
    let mixed = |name: &str, native_s: [f64; 2], user: f64| {
        let subject = footprint([0.1 * native_s[0] * user, native_s[1]], &[]);
        Reference {
            reference: ReferenceRun { per_second: 100.0, footprint: footprint(native_s, OPENERS) },
            subject: ReferenceRun { per_second: 10.0, footprint: subject },
            ..reference(name, [1.0, 1.0], OPENERS)
        }
    };
    let starters =
        [48.0, 50.0, 52.0, 50.0, 49.0, 51.0, 50.0, 50.0].map(|user| mixed("starter", [0.1, 0.3], user));
    let computers = [4.8, 5.0, 5.2, 5.0].map(|user| mixed("computer", [0.9, 0.02], user));
    let costs = costs(starters.into_iter().chain(computers).collect());
    for (seen_s, factor) in [([0.8, 0.02], 5.0), ([0.09, 0.25], 50.0)] {
        let user = likened(&costs, &footprint(seen_s, OPENERS), &|_, _| 1.0).unwrap().user.unwrap();
        assert!((user.ln.exp() / factor - 1.0).abs() < 0.02, "{seen_s:?} {user:?}");
    }
}

#[test]
fn crowded_runs_are_compared_as_if_alone() {
    let costs = costs(two_kinds());
    let crowding = |side: usize, _: f64| if side == 1 { 1.25 } else { 1.0 };
    let found = likened(&costs, &footprint([0.0, 0.8], OPENERS), &crowding).unwrap();
    assert!((found.kernel.ln.exp() / 4.0 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn without_samples_or_with_too_few_nothing_is_likened() {
    let all = two_kinds();
    assert!(likened(&costs(all.clone()), &footprint([0.0, 0.8], &[]), &|_, _| 1.0).is_none());
    let few = costs(all[..7].to_vec());
    assert!(likened(&few, &footprint([0.0, 0.8], OPENERS), &|_, _| 1.0).is_none());
    // One that was not sampled, or with next to no kernel code, is none.
    let mut unsampled = all.clone();
    unsampled[0].reference.footprint.functions.clear();
    assert!(likened(&costs(unsampled), &footprint([0.0, 0.8], OPENERS), &|_, _| 1.0).is_none());
    // User code may be lacking alone.
    let mut idle = all;
    idle[7].subject.footprint.cpu_ns[0] = 1_000_000;
    assert_eq!(likened(&costs(idle), &footprint([0.0, 0.8], OPENERS), &|_, _| 1.0).unwrap().user, None);
}

/// Programs of one kind whose user code takes five to sixty times as long, by a rule that translation natively tells.
#[test]
fn user_code_that_was_translated_natively_gets_the_factor_of_its_own() {
    let translations = [4.0, 6.0, 9.0, 13.0, 18.0, 24.0, 30.0, 40.0];
    let known = translations.map(|times: f64| {
        let mut one = reference("one", [1.5 * times.powf(1.1), 10.0], OPENERS);
        one.reference.footprint.translated_ns = scaled_ns(200_000_000, times);
        one
    });
    let costs = costs(known.into());
    let seen = footprint([0.25, 0.4], OPENERS);
    let by_likeness = likened(&costs, &seen, &|_, _| 1.0).unwrap();
    assert_eq!(by_likeness.from.translation, None);
    let tried = Footprint { translated_ns: Some(1_250_000_000), ..seen };
    let found = likened(&costs, &tried, &|_, _| 1.0).unwrap();
    assert!((found.from.translation.unwrap() - 5.0).abs() < 1e-9);
    let wanted = 1.5 * 5.0f64.powf(1.1);
    assert!((found.user.unwrap().ln.exp() / wanted - 1.0).abs() < 0.01, "{found:?} {wanted}");
    assert!(by_likeness.user.unwrap().deviation > 0.5 && found.user.unwrap().deviation < 0.01, "{found:?}");
}

/// Where how long code takes on the subject has nothing to do with its translation, likeness is what tells.
#[test]
fn translation_that_tells_less_than_likeness_is_not_used() {
    let mut known = two_kinds();
    for (one, times) in known.iter_mut().zip([7.0, 30.0, 12.0, 25.0, 8.0, 26.0, 11.0, 33.0]) {
        one.reference.footprint.translated_ns = scaled_ns(200_000_000, times);
    }
    let tried = Footprint { translated_ns: Some(2_500_000_000), ..footprint([0.25, 0.4], OPENERS) };
    let found = likened(&costs(known), &tried, &|_, _| 1.0).unwrap();
    assert!(
        (found.user.unwrap().ln.exp() / 9.0 - 1.0).abs() < 0.02 && found.from.translation.is_none(),
        "{found:?}"
    );
}

use virtbench_record::{Footprint, Source, Sourced};

use super::super::tests::profile;
use super::*;
use crate::test_support::host;

fn cost(part: CostPart, reference_ns: f64, factor: f64) -> Cost {
    Cost { name: format!("{part:?}"), part, reference_ns, subject_ns: reference_ns * factor }
}

fn costs(user: f64, system: f64, copy: f64, wait: f64) -> Costs {
    use CostPart::{Copy, System, User, Wait};
    Costs {
        left_out: Vec::new(),
        references: Vec::new(),
        crowded: Vec::new(),
        costs_format: 1,
        origin: None,
        host: host(2),
        adapter: "virtio-blk".into(),
        accelerator: "tcg".into(),
        vcpus: 2,
        costs: vec![
            cost(User, 100.0, user),
            cost(System, 100.0, system),
            cost(Copy, 0.1, copy),
            cost(Wait, 1e5, wait),
        ],
    }
}

fn application(user: f64, system: f64, copied: f64, workers: u32) -> Profile {
    let known = |value| Sourced::known(value, Source::User);
    Profile {
        cpu_user_percent: known(user),
        cpu_system_percent: known(system),
        footprint: Sourced::unavailable("not counted"),
        copied_bytes_per_second: known(copied),
        workers: Sourced::known(workers, Source::User),
        processors: Sourced::known(2, Source::User),
        ..profile(100.0, &[(4096.0, 100.0)])
    }
}

/// A run of a second, in which kernel code took so much of a processor and so many bytes were copied.
fn reference_run(system_s: f64, copied_bytes: u64, per_second: f64) -> ReferenceRun {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let cpu_ns = [0, (system_s * 1e9) as u64];
    let footprint = Footprint { elapsed_ns: 1_000_000_000, cpu_ns, copied_bytes, ..Footprint::default() };
    ReferenceRun { per_second, footprint }
}

#[test]
fn kernel_code_of_reference_applications_counts_more_than_pieces() {
    let profile = application(0.0, 80.0, 0.0, 1);
    let with = |count: usize| {
        // 0.5 s a second natively; in the VM 0.9 s for a twentieth of the operations, of which 1e9 bytes x 0.1 ns x 3 are
        // copying: ((0.9 - 0.3) / 5) / ((0.5 - 0.1) / 100) = 30.
        let reference = Reference {
            name: "reference".into(),
            workers: 1,
            reference: reference_run(0.5, 1_000_000_000, 100.0),
            subject: reference_run(0.9, 1_000_000_000, 5.0),
        };
        let mut references = vec![reference.clone(); count];
        // One that mostly copies, and one that does next to nothing, say nothing of kernel code.
        references.push(Reference { reference: reference_run(0.5, 4_000_000_000, 1.0), ..reference.clone() });
        references.push(Reference { subject: reference_run(0.01, 0, 1.0), ..reference });
        let costs = Costs { references, ..costs(2.0, 5.0, 3.0, 3.0) };
        Scaling::new(&profile, &costs, None).unwrap().predict(1).factors.system
    };
    assert!((with(5) - 30.0).abs() < 1e-6, "{}", with(5));
    assert!((with(4) - 5.0).abs() < 1e-6, "{}", with(4));
}

#[test]
fn waiting_that_was_not_measured_matters_to_those_who_wait_alone() {
    let mut costs = costs(2.0, 5.0, 3.0, 3.0);
    costs.costs.retain(|cost| cost.part != CostPart::Wait);
    assert!(Scaling::new(&application(60.0, 40.0, 0.0, 1), &costs, None).is_ok());
    let needs = Scaling::new(&application(30.0, 20.0, 0.0, 1), &costs, None).unwrap_err();
    assert!(needs.contains("waiting"), "{needs}");
    let unknown = Profile { cpu_user_percent: Sourced::unavailable("x"), ..application(1.0, 1.0, 0.0, 1) };
    assert!(Scaling::new(&unknown, &costs, None).unwrap_err().contains("CPU use"));
}

fn ratio(profile: &Profile, costs: &Costs) -> f64 {
    Scaling::new(profile, costs, None).unwrap().predict(1).ratio
}

#[test]
fn a_single_worker_takes_the_sum_of_its_parts() {
    // 0.2 s of user code, 0.3 of kernel code of which 0.1 copies 1 GB, 0.5 of waiting.
    let profile = application(20.0, 30.0, 1e9, 1);
    let expected = 1.0 / (0.2 * 2.0 + 0.2 * 5.0 + 0.1 * 30.0 + 0.5 * 3.0);
    let found = ratio(&profile, &costs(2.0, 5.0, 30.0, 3.0));
    assert!((found / expected - 1.0).abs() < 1e-6, "{found} {expected}");
    assert!((ratio(&profile, &costs(1.0, 1.0, 1.0, 1.0)) - 1.0).abs() < 1e-6);
}

#[test]
fn workers_share_the_subject_s_processors() {
    // Four that wait natively and compute 0.4 s in a second: in the VM that is 8 s for two processors.
    let profile = application(40.0, 0.0, 0.0, 4);
    let found = ratio(&profile, &costs(20.0, 1.0, 1.0, 1.0));
    assert!((0.2..=0.25).contains(&found), "{found}");
    // The kernel's threads need processors too.
    let busy = Profile { cpu_kernel_threads_percent: Sourced::known(40.0, Source::User), ..profile };
    let found = ratio(&busy, &costs(20.0, 20.0, 1.0, 1.0));
    assert!((0.11..=0.1251).contains(&found), "{found}");
}

#[test]
fn pieces_that_differ_widen_the_interval_and_it_nests() {
    let mut unsure = costs(10.0, 5.0, 5.0, 2.0);
    unsure.costs.push(cost(CostPart::User, 50.0, 20.0));
    let profile = application(90.0, 0.0, 0.0, 1);
    let sure = Scaling::new(&profile, &costs(10.0, 5.0, 5.0, 2.0), None).unwrap().predict(1);
    let drawn = Scaling::new(&profile, &unsure, None).unwrap().predict(1);
    let width = |scaled: &Scaled| scaled.draws[scaled.draws.len() - 1] / scaled.draws[0];
    assert!(width(&sure) < 1.001 && width(&drawn) > 2.0);
    assert!(
        Scaling::new(&Profile { cpu_user_percent: Sourced::unavailable("x"), ..profile }, &unsure, None)
            .is_err()
    );
}

#[test]
fn processors_that_are_busy_together_slow_each_other_down() {
    let mut costs = costs(10.0, 10.0, 10.0, 10.0);
    let crowded = |factor: f64| Cost { subject_ns: 1000.0 * factor, ..cost(CostPart::User, 100.0, 1.0) };
    // Four workers that only compute keep both busy; a single one never does.
    let [four, one] =
        [4, 1].map(|workers| application(if workers == 4 { 200.0 } else { 90.0 }, 0.0, 0.0, workers));
    let before = [ratio(&four, &costs), ratio(&one, &costs)];
    costs.crowded = vec![crowded(1.25)];
    let after = [ratio(&four, &costs), ratio(&one, &costs)];
    assert!((after[0] / before[0] - 0.8).abs() < 0.01, "{before:?} {after:?}");
    assert!((after[1] / before[1] - 1.0).abs() < 1e-9, "{before:?} {after:?}");
}

#[test]
fn waiting_for_each_other_grows_with_what_the_others_do() {
    let costs = costs(20.0, 20.0, 20.0, 2.0);
    // Two workers, a tenth of a processor; the disk is busy all the time that they wait, or never.
    let waits = |disk: f64| Profile {
        outstanding_mean: Sourced::known(disk, Source::BlockStatistics),
        ..application(10.0, 0.0, 0.0, 2)
    };
    let (disk, locks) = (ratio(&waits(2.0), &costs), ratio(&waits(0.0), &costs));
    assert!((disk - 0.36).abs() < 0.06 && (locks - 0.05).abs() < 0.01, "{disk} {locks}");
}

use virtbench_record::{Cost, Crossings, DiskCounts, IoStalls, ReferenceRun, Source, Sourced};
use virtbench_units::Random;

use super::super::tests::profile;
use super::super::{Inputs, PredictionMethod, Rounding, predict};
use super::*;
use crate::test_support::host;

/// What each part costs on the invented subject: multiples, and microseconds.
const COSTS: Amounts = [1.1, 4.0, 1.3, 3.5, 6.0, 30.0, 8.0, 120.0, 20.0, 90.0, 1.0];

/// Kernel time that goes to neither files nor copying.
fn entering_s(amounts: &Amounts) -> f64 {
    0.001 + amounts[1]
}

fn kernel_s(amounts: &Amounts) -> f64 {
    amounts[1] + amounts[2] + entering_s(amounts)
}

/// A second of so much of each part; what nothing is computed in is waiting.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn footprint(amounts: &Amounts) -> Footprint {
    let [user_s, files_s, copying_s, calls, names, changes, faults, forks, writes, flushes, _] = *amounts;
    let count = |millions: f64| (millions * 1e6).round() as u64;
    let ns = |seconds: f64| (seconds * 1e9) as u64;
    Footprint {
        elapsed_ns: 1_000_000_000,
        cpu_ns: [ns(user_s), ns(kernel_s(amounts))],
        functions: [
            ("ext4_lookup", files_s),
            ("do_syscall_64", entering_s(amounts)),
            ("_copy_to_iter", copying_s),
        ]
        .map(|(name, seconds)| (name.to_owned(), ns(seconds)))
        .into(),
        disks: Some(DiskCounts { writes: count(writes), flushes: count(flushes), ..DiskCounts::default() }),
        crossings: Some(Crossings {
            calls: count(calls),
            names: count(names),
            faults: count(faults),
            changes: count(changes),
            forks: count(forks),
        }),
        ..Footprint::default()
    }
}

/// A second of random work, in which every part may be missing.
fn random_amounts(random: &mut Random) -> Amounts {
    let most = [0.4, 0.1, 0.1, 0.2, 0.05, 0.01, 0.05, 0.002, 0.003, 0.002, 0.3];
    waiting(most.map(|most| if random.unit() < 0.3 { 0.0 } else { most * random.unit() }))
}

/// With what is left of a second.
fn waiting(mut amounts: Amounts) -> Amounts {
    amounts[COUNT - 1] = 1.0 - amounts[0] - kernel_s(&amounts);
    amounts
}

/// References whose times on the subject are the sums of their parts, each off by up to `noise`, a share.
fn references(noise: f64) -> Vec<Reference> {
    let mut random = Random::new(7);
    let one = |number: usize| {
        let amounts = random_amounts(&mut random);
        let off = 1.0 + noise * (2.0 * random.unit() - 1.0);
        let subject_s = total(&COSTS, &amounts) * off;
        Reference {
            name: format!("reference-{number}"),
            workers: 1,
            reference: ReferenceRun { per_second: 1.0, footprint: footprint(&amounts) },
            subject: ReferenceRun { per_second: 1.0 / subject_s, footprint: Footprint::default() },
        }
    };
    (0..30).map(one).collect()
}

fn costs(user: f64, references: Vec<Reference>) -> Costs {
    let cost = |part| Cost { name: format!("{part:?}"), part, reference_ns: 1.0, subject_ns: user };
    Costs {
        left_out: Vec::new(),
        costs_format: 4,
        origin: None,
        host: host(2),
        adapter: "virtio-blk".into(),
        accelerator: "uml".into(),
        vcpus: 1,
        costs: [CostPart::User, CostPart::System, CostPart::Copy, CostPart::Wait].map(cost).to_vec(),
        crowded: Vec::new(),
        references,
    }
}

fn application(amounts: &Amounts) -> Profile {
    let percent = |seconds: f64| Sourced::known(100.0 * seconds, Source::User);
    Profile {
        cpu_user_percent: percent(amounts[0]),
        cpu_system_percent: percent(kernel_s(amounts)),
        footprint: Sourced::known(footprint(amounts), Source::User),
        workers: Sourced::known(1, Source::User),
        ..profile(100.0, &[(4096.0, 100.0)])
    }
}

const BUSY: Amounts = [0.3, 0.1, 0.05, 0.08, 0.02, 0.002, 0.02, 0.0005, 0.001, 0.0005, 0.45];

fn crossed(profile: &Profile, costs: &Costs) -> Crossed {
    Sum::new(profile, costs).unwrap().predict(1)
}

#[test]
fn what_each_part_costs_follows_from_the_references() {
    let costs = costs(1.05, references(0.0));
    let found = crossed(&application(&BUSY), &costs);
    let truth = 1.0 / total(&COSTS, &BUSY);
    assert!((found.ratio / truth - 1.0).abs() < 0.01, "{} {truth}", found.ratio);
    assert!(found.spread < 0.01 && !found.is_unlike, "{found:?}");
    assert_eq!(found.references, 30);
}

#[test]
fn what_stood_still_for_the_reference_s_disk_is_no_part_of_the_subject_s_time() {
    let costs = costs(1.05, references(0.0));
    let (application, mut stalled) = (application(&BUSY), application(&BUSY));
    let Sourced::Known { value, .. } = &mut stalled.footprint else { unreachable!() };
    value.stalls = Some(IoStalls { some_ns: 400_000_000, full_ns: 300_000_000 });
    let [plain, stalled] = [&application, &stalled].map(|profile| 1.0 / crossed(profile, &costs).ratio);
    assert!((plain - stalled - 0.3).abs() < 0.01, "{plain} {stalled}");
}

#[test]
fn intervals_are_as_wide_as_what_references_are_missed_by() {
    let width = |noise: f64| {
        let found = crossed(&application(&BUSY), &costs(1.05, references(noise)));
        found.draws[found.draws.len() * 9 / 10] / found.draws[found.draws.len() / 10]
    };
    let widths = [0.0, 0.2, 0.6].map(width);
    assert!(widths.is_sorted() && widths[0] < 1.15 && widths[2] > 1.4, "{widths:?}");
}

#[test]
fn what_is_unlike_all_references_says_so_and_is_wider() {
    let like = crossed(&application(&BUSY), &costs(1.05, references(0.2)));
    // It uses the disk and does nothing else.
    let writer = application(&[0.001, 0.001, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.2, 0.1, 0.0]);
    let unlike = crossed(&writer, &costs(1.05, references(0.2)));
    let width = |found: &Crossed| found.draws[390] / found.draws[10];
    assert!(unlike.is_unlike && !like.is_unlike);
    assert!(width(&unlike) > width(&like), "{} {}", width(&unlike), width(&like));
    let prediction = predict(&inputs(&writer, &costs(1.05, references(0.2)))).unwrap();
    assert!(prediction.cautions.iter().any(|said| said.contains("unlike")), "{:?}", prediction.cautions);
}

fn inputs<'a>(profile: &'a Profile, costs: &'a Costs) -> Inputs<'a> {
    Inputs {
        profile,
        surface: None,
        runs: None,
        costs: Some(costs),
        storages: None,
        compute: None,
        subject_processors: Some(costs.vcpus),
        method: None,
        rounding: Rounding::Exact,
        seed: 1,
    }
}

#[test]
fn it_is_chosen_where_user_code_takes_as_long_and_everything_was_counted() {
    let application = application(&BUSY);
    let chosen = |costs: &Costs| predict(&inputs(&application, costs)).unwrap().method;
    let like = costs(1.05, references(0.1));
    assert_eq!(chosen(&like), PredictionMethod::Crossings);
    assert_eq!(chosen(&costs(12.0, references(0.1))), PredictionMethod::Scaling, "an emulator");
    assert_eq!(chosen(&Costs { vcpus: 2, ..like.clone() }), PredictionMethod::Scaling);
    let mut uncounted = like.clone();
    for one in &mut uncounted.references {
        one.reference.footprint.crossings = None;
    }
    assert_eq!(chosen(&uncounted), PredictionMethod::Scaling);
    let asked = Inputs { method: Some(PredictionMethod::Crossings), ..inputs(&application, &uncounted) };
    assert!(predict(&asked).unwrap_err().to_string().contains("were counted"));
}

#[test]
fn a_prediction_says_where_the_time_goes_and_what_would_help() {
    let (application, costs) = (application(&BUSY), costs(1.05, references(0.1)));
    let prediction = predict(&inputs(&application, &costs)).unwrap();
    assert!(prediction.bottleneck.contains("user code"), "{}", prediction.bottleneck);
    assert!(prediction.what_if.iter().any(|what| what.change.contains("system calls")));
    let interval = prediction.interval.unwrap();
    assert!(interval.low < prediction.ratio && prediction.ratio < interval.high);
    let [before, after] = prediction.breakdown.unwrap();
    let sum = |breakdown: &super::super::Breakdown| breakdown.0.iter().map(|(_, ms)| ms).sum::<f64>();
    assert!((sum(&before) - 1000.0).abs() < 1.0 && (sum(&after) * prediction.ratio - 1000.0).abs() < 1.0);
}

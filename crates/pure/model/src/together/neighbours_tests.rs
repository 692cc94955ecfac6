use super::super::test_support::{member, provenance, record, set, workload};
use super::*;
use virtbench_record::{ClockCheck, MemberStatus, SetRole};

const TABLE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/papers/table-1-specjvm2008.csv"));

struct Row {
    vms: usize,
    mean: f64,
    stddev: Option<f64>,
    accumulated: f64,
}

fn table() -> Vec<Row> {
    let rows = TABLE.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()));
    rows.map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        Row {
            vms: cells[0].parse().unwrap(),
            mean: cells[1].parse().unwrap(),
            stddev: cells[2].parse().ok(),
            accumulated: cells[3].parse().unwrap(),
        }
    })
    .collect()
}

/// So many scores with this mean and standard deviation: one up, one down, the rest in the middle.
fn scores(row: &Row) -> Vec<f64> {
    let away = row.stddev.unwrap_or(0.0) * ((row.vms as f64 - 1.0) / 2.0).sqrt();
    let mut scores = vec![row.mean; row.vms];
    if row.vms > 1 {
        scores[0] += away;
        scores[row.vms - 1] -= away;
    }
    scores
}

/// [Multi-VM 2010]'s Table 1 comes to its own accumulated scores, and to "the standard deviations remain below
/// 1.2 %" (section 3.3) as far as the table itself bears it out: 6 and 7 VMs have 1.13 and 1.24 %.
#[test]
fn paper_4_s_table_1_comes_to_its_own_sums_and_spreads() {
    let sets =
        table().iter().map(|row| set(&row.vms.to_string(), SetRole::Together, row.vms, None)).collect();
    let provenance = provenance(8, 2, sets);
    let records: Vec<SetRecord> = table()
        .iter()
        .map(|row| {
            let members = scores(row).into_iter().enumerate();
            let members = members.map(|(index, score)| member(index + 1, workload(&[score]))).collect();
            record(&row.vms.to_string(), 0, 100.0, members)
        })
        .collect();
    let analysis = analyse_neighbours(&provenance, &records);
    let regions: Vec<Region> = analysis.sets.iter().map(|set| set.region).collect();
    assert_eq!(regions, [Region::Fewer, Region::Equal, Region::More, Region::More, Region::More]);
    let [score] = analysis.metrics.as_slice() else { panic!("{:?}", analysis.metrics) };
    for (row, shared) in table().iter().zip(&score.sets) {
        let sum = shared.accumulated.unwrap().mean;
        assert!((sum / row.accumulated - 1.0).abs() < 1e-3, "{} VMs: {sum}", row.vms);
        assert_eq!(shared.stddev.is_some(), row.vms > 1);
        if let Some(stddev) = row.stddev {
            assert!((shared.stddev.unwrap() - stddev).abs() < 1e-9, "{} VMs: {:?}", row.vms, shared.stddev);
            assert!(shared.stddev_percent().unwrap() < 1.25, "{} VMs", row.vms);
            assert!(shared.jain.unwrap().mean > 0.999, "CPU time is distributed fairly");
        }
    }
    // "The accumulated score increases for one to five VMs and decreases" from there.
    let best =
        score.sets.iter().max_by(|a, b| a.accumulated.unwrap().mean.total_cmp(&b.accumulated.unwrap().mean));
    assert_eq!(analysis.sets[best.unwrap().set].vms, 5);
    assert!((score.sets[1].against_one.unwrap().value - 56.24 / 14.77).abs() < 1e-3);
}

fn two_sets() -> Vec<SetPlan> {
    vec![set("1", SetRole::Alone, 1, None), set("2", SetRole::Together, 2, None)]
}

fn two(repetition: u32, first: f64, second: f64) -> SetRecord {
    record("2", repetition, 100.0, vec![member(1, workload(&[first])), member(2, workload(&[second]))])
}

#[test]
fn repetitions_give_intervals_and_unfair_shares_are_seen() {
    let mut records: Vec<SetRecord> =
        (0..3).map(|n| record("1", n, 50.0, vec![member(1, workload(&[4.0]))])).collect();
    records.extend((0..3).map(|n| two(n, 3.0 + 0.1 * f64::from(n), 1.0)));
    let analysis = analyse_neighbours(&provenance(2, 1, two_sets()), &records);
    let shared = &analysis.metrics[0].sets[1];
    assert_eq!(shared.vms.len(), 2);
    assert!((shared.worst_to_best.unwrap().mean - (1.0 / 3.0 + 1.0 / 3.1 + 1.0 / 3.2) / 3.0).abs() < 1e-9);
    assert!((0.78..0.81).contains(&shared.jain.unwrap().mean));
    let against = shared.against_one.unwrap();
    assert!((1.0..1.05).contains(&against.value) && against.interval.is_some(), "{against:?}");
    assert_eq!(analysis.sets[1].guest_steal_percent, Some(10.0));
}

#[test]
fn intervals_stay_within_what_a_figure_can_be() {
    // Repetitions this far apart have a Student's interval of the mean that reaches below zero.
    let records = [two(0, 9.0, 1.0), two(1, 2.0, 2.0), two(2, 5.0, 1.0)];
    let analysis = analyse_neighbours(&provenance(2, 1, two_sets()), &records);
    let shared = &analysis.metrics[0].sets[0];
    for (estimate, most) in [
        (shared.jain, 1.0),
        (shared.worst_to_best, 1.0),
        (shared.accumulated, f64::MAX),
        (Some(shared.mean), f64::MAX),
    ] {
        let span = estimate.unwrap().span().unwrap();
        assert!(span.low > 0.0 && span.low < span.high && span.high < most, "{span:?}");
    }
    assert!(shared.jain.unwrap().span().unwrap().low > 0.5, "Jain's index of two is one half at least");
}

#[test]
fn emulated_guests_know_of_no_stolen_time() {
    let mut provenance = provenance(2, 1, two_sets());
    provenance.guest.as_mut().unwrap().accelerator.name = "tcg".into();
    let analysis = analyse_neighbours(&provenance, &[two(0, 3.0, 1.0)]);
    assert_eq!(analysis.sets[1].guest_steal_percent, None);
}

#[test]
fn a_machine_that_died_takes_nothing_from_the_others_and_a_wrong_clock_is_not_used() {
    let mut died = two(0, 3.0, 1.0);
    died.members[1].status = MemberStatus::Failed { why: "QEMU was killed".into() };
    let mut wrong = two(1, 900.0, 2.0);
    if let MemberStatus::Measured(measured) = &mut wrong.members[0].status {
        measured.clock = Some(ClockCheck { drift_ppm: 1.1e7, uncertainty_ppm: 10.0 });
    }
    let analysis = analyse_neighbours(&provenance(2, 1, two_sets()), &[died, wrong]);
    let (about, shared) = (&analysis.sets[1], &analysis.metrics[0].sets[0]);
    assert_eq!((about.failed, about.unusable), (1, 1));
    assert_eq!(
        (shared.vms[0].samples.as_slice(), shared.vms[1].samples.as_slice()),
        (&[3.0][..], &[2.0][..])
    );
    assert_eq!((shared.jain, shared.accumulated), (None, None), "no repetition was whole");
}

#[test]
fn a_host_out_of_cpu_falsifies_what_emulated_guests_show() {
    let mut tcg = provenance(2, 1, two_sets());
    tcg.guest.as_mut().unwrap().accelerator.name = "tcg".into();
    let busy = |percent: f64, own: f64| {
        let mut record =
            record("2", 0, percent, vec![member(1, workload(&[1.0])), member(2, workload(&[1.0]))]);
        record.processes.push(virtbench_record::ProcessUse {
            name: "qemu".into(),
            environment: Some("vm1".into()),
            role: virtbench_record::ProcessRole::MeasuredGuest,
            threads: 1,
            user_percent: own,
            system_percent: 0.0,
        });
        record
    };
    let found = |provenance: &Provenance, record: SetRecord| {
        analyse_neighbours(provenance, &[record]).sets[1].overload
    };
    assert_eq!(found(&tcg, busy(198.0, 190.0)), Some(Overload::Emulation));
    assert_eq!(found(&tcg, busy(198.0, 120.0)), Some(Overload::Others));
    assert_eq!(found(&tcg, busy(150.0, 140.0)), None);
    let kvm = super::super::test_support::provenance(2, 1, two_sets());
    assert_eq!(found(&kvm, busy(198.0, 190.0)), None, "sharing processors is what is asked about");
    assert_eq!(found(&kvm, busy(198.0, 120.0)), Some(Overload::Others));
}

#[test]
fn nothing_measured_is_nothing_said() {
    let analysis = analyse_neighbours(&provenance(2, 1, two_sets()), &[]);
    assert!(analysis.metrics.is_empty() && analysis.sets.len() == 2);
}

use virtbench_record::{Plan, PlatformDomain, SamplesKey, SamplesMeasured, Status};

use super::*;

fn plan(domains: &[&str]) -> PlatformPlan {
    let domain = |name: &&str| PlatformDomain {
        name: (*name).into(),
        runs: Vec::new(),
        takes_ns: 0,
        absolute: false,
        left_out: None,
    };
    PlatformPlan {
        profile: "minute".into(),
        domains: domains.iter().map(domain).collect(),
        repetitions: 3,
        weights: [].into(),
        accelerator: "auto".into(),
        environments: Vec::new(),
        reference: None,
        seed: 1,
    }
}

/// A VM that does so much of what this host does, which is 100.
fn records(domain: &str, vm: f64) -> Vec<SamplesRecord> {
    let record = |repetition: u32| {
        let vm = vm * (1.0 + 0.001 * f64::from(repetition));
        let sample = |name: &str, unit: &str, value| Sample::new(name, unit, Better::Higher, value);
        let samples = vec![
            sample("rate (native)", "1/s", 100.0),
            sample("rate (vm)", "1/s", vm),
            sample("rate (vm / native)", "", vm / 100.0),
        ];
        let measured = SamplesMeasured { samples, ..SamplesMeasured::default() };
        SamplesRecord::new(SamplesKey { side: domain.into(), repetition }, 0, Status::measured(measured))
    };
    (0..3).map(record).collect()
}

fn provenance(plan: &PlatformPlan, accelerator: &str) -> Provenance {
    let mut provenance = virtbench_samples::grid::described(Plan::Platform(plan.clone()));
    provenance.guest.as_mut().unwrap().accelerator.name = accelerator.into();
    provenance
}

fn compared(
    plans: [&PlatformPlan; 2],
    accelerators: [&str; 2],
    records: [&[SamplesRecord]; 2],
) -> PlatformsCompared {
    let provenances = [0, 1].map(|run| provenance(plans[run], accelerators[run]));
    let run =
        |run: usize| PlatformRunOf { provenance: &provenances[run], plan: plans[run], records: records[run] };
    compare_platforms([run(0), run(1)], Margin::default())
}

#[test]
fn the_domain_that_moved_is_named_with_the_side_that_moved_it() {
    let plan = plan(&["storage", "memory"]);
    let before = [records("storage", 50.0), records("memory", 90.0)].concat();
    let after = [records("storage", 25.0), records("memory", 90.0)].concat();
    let found = compared([&plan, &plan], ["tcg"; 2], [&before, &after]);
    let [storage, memory] = found.domains.as_slice() else { panic!("{found:?}") };
    assert!((storage.times - 0.5).abs() < 1e-9 && storage.verdict == Direction::Worse, "{storage:?}");
    assert!(storage.regression && found.is_regression() && found.is_judged());
    let names: Vec<&str> = storage.figures.iter().map(|figure| figure.name.as_str()).collect();
    assert_eq!(names, ["rate (vm)", "rate (vm / native)"], "natively nothing moved");
    assert!(memory.verdict == Direction::Equivalent && memory.figures.is_empty(), "{memory:?}");
    let score = found.score.unwrap();
    assert!((score.times - 0.5f64.sqrt()).abs() < 1e-9 && score.verdict == Direction::Worse);
}

#[test]
fn what_something_else_executed_is_shown_and_not_judged() {
    let plan = plan(&["storage"]);
    let (before, after) = (records("storage", 90.0), records("storage", 20.0));
    let found = compared([&plan, &plan], ["kvm", "tcg"], [&before, &after]);
    assert_eq!(found.executed_by, Some(["KVM".into(), "TCG".into()]));
    assert!(found.domains[0].verdict == Direction::Undecided && !found.is_regression() && !found.is_judged());
    assert!(found.differences.iter().any(|one| one.contains("accelerator")), "{:?}", found.differences);
}

#[test]
fn scores_of_other_domains_are_not_compared_and_domains_of_both_are() {
    let (one, two) = (plan(&["storage", "memory"]), plan(&["storage", "network"]));
    let before = [records("storage", 50.0), records("memory", 90.0)].concat();
    let after = [records("storage", 50.0), records("network", 10.0)].concat();
    let found = compared([&one, &two], ["tcg"; 2], [&before, &after]);
    assert!(found.score.is_none() && found.domains.len() == 1);
    assert_eq!(found.unmatched, ["memory", "network"]);
    assert!(found.undecided().iter().any(|why| why.contains("scores are of other domains")));
}

#[test]
fn domains_without_a_counterpart_are_compared_by_their_own_figures() {
    let mut plan = plan(&["adapters"]);
    plan.domains[0].absolute = true;
    let (before, after) = (records("adapters", 50.0), records("adapters", 100.0));
    let found = compared([&plan, &plan], ["tcg"; 2], [&before, &after]);
    let [adapters] = found.domains.as_slice() else { panic!("{found:?}") };
    assert!((adapters.times - 2.0).abs() < 1e-9 && adapters.verdict == Direction::Better, "{adapters:?}");
    assert!(adapters.ratios.is_none() && found.score.is_none() && found.unmatched.is_empty(), "{found:?}");
    // Where the runs have no figure in common, nothing is said of it.
    let renamed = after.into_iter().map(|mut record| {
        let Status::Measured(measured) = &mut record.status else { return record };
        measured.samples.iter_mut().for_each(|sample| sample.name.insert(0, 'x'));
        record
    });
    let found = compared([&plan, &plan], ["tcg"; 2], [&before, &renamed.collect::<Vec<_>>()]);
    assert!(found.domains.is_empty() && found.nothing_in_common == ["adapters"], "{found:?}");
    assert!(found.undecided()[0].contains("no figure in common"), "{:?}", found.undecided());
}

#[test]
fn a_configuration_that_did_nothing_is_neither_passed_over_nor_made_a_ratio() {
    let runs = virtbench_samples::configurations::adapters_plan(1);
    let mut records = virtbench_samples::configurations::adapters_records(&runs);
    let (first, slow) = (runs.environments[0].clone(), runs.environments[1].clone());
    for record in records.iter_mut().filter(|record| record.environment == slow) {
        let measured = virtbench_samples::grid::measured_mut(record);
        measured.outcome.total.iops = 0.0;
        measured.outcome.total.bytes_per_second = 0.0;
    }
    let provenance = virtbench_samples::configurations::adapters_provenance(runs);
    let found = virtbench_record::Records::Points(records);
    let samples = super::super::samples_of_domain(&[("adapters".into(), &provenance, &found)], true).unwrap();
    assert!(samples.iter().all(|sample| !sample.value.is_nan()), "{samples:?}");
    let of = |name: &str| samples.iter().find(|sample| sample.name.starts_with(name)).unwrap().value;
    assert_eq!(of(&format!("throughput ({slow},")), 0.0);
    assert!(of(&format!("throughput ({first},")) > 0.0);
    // What is without end stays so over the repetitions.
    let endless = Sample::new(format!("latency ({slow})"), "ns", Better::Lower, f64::INFINITY);
    let record = |repetition, sample: &Sample| {
        let measured = SamplesMeasured { samples: vec![sample.clone()], ..SamplesMeasured::default() };
        SamplesRecord::new(SamplesKey { side: "adapters".into(), repetition }, 0, Status::measured(measured))
    };
    let records = [record(0, &endless), record(1, &Sample { value: 5.0, ..endless.clone() })];
    assert_eq!(super::super::score::figures(records.iter())[0].value, f64::INFINITY);
}

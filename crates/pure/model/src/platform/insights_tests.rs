use virtbench_record::{Better, SamplesKey};
use virtbench_record::{
    ClockFacts, FrequencyFacts, HostTuning, KsmFacts, NumaPages, ObservedDisk, Plan, PlatformDomain,
    PlatformObserved, PlatformPlan, Provenance, Sample, SamplesMeasured, SamplesRecord, Status, TimeCounts,
};
use virtbench_samples::host::host_use;

use super::*;
use crate::platform::{advice, score_platform};

/// A host on which nothing is wrong, as a run sees it.
struct Case {
    tuning: HostTuning,
    observed: PlatformObserved,
    steal_percent: f64,
    memory: f64,
    times: Vec<TimeCounts>,
}

fn disk(setup: &str, takes: u32, cache: &str, mb: f64) -> ObservedDisk {
    ObservedDisk {
        setup: setup.into(),
        takes_at_once: Some(takes),
        outstanding: 16,
        write_cache: Some(cache.into()),
        throughput_bytes_per_s: mb * 1e6,
        writes_bytes_per_s: Some(mb * 1e6),
    }
}

/// Times around each of these, in microseconds.
fn times(name: &str, around_us: &[u64]) -> TimeCounts {
    let parts = [(90, 50), (95, 200), (100, 500), (105, 200), (110, 50)];
    let counts = around_us
        .iter()
        .flat_map(|us| parts.iter().map(move |(percent, count)| (us * 10 * percent, *count)))
        .collect();
    TimeCounts { name: name.into(), counts }
}

fn clean() -> Case {
    Case {
        tuning: HostTuning {
            transparent_huge_pages: Some("madvise".into()),
            ksm: Some(KsmFacts { runs: false, sharing_pages: 0 }),
            clock: Some(ClockFacts { source: "tsc".into(), others: vec!["hpet".into()], read_ns: 25 }),
            numa_nodes: Some(2),
            frequency: Some(FrequencyFacts { governor: "performance".into(), limits_mhz: [800, 3000] }),
        },
        observed: PlatformObserved {
            frequency_mhz: Some([2990, 3000]),
            numa: Some(NumaPages { local: 100_000, remote: 100, migrated: 10 }),
            disks: vec![
                disk("virtio-blk", 256, "write back", 100.0),
                disk("nvme", 1024, "write back", 101.0),
                disk("virtio-blk,cache=writethrough", 256, "write through", 99.0),
            ],
        },
        steal_percent: 0.1,
        memory: 0.95,
        times: vec![times("native: request", &[20]), times("tap: request", &[60])],
    }
}

impl Case {
    fn records(&self) -> Vec<SamplesRecord> {
        let mut host = host_use(100.0, 60.0, 40.0);
        host.steal_percent = self.steal_percent;
        let samples = vec![Sample::new("copy (vm / native)", "", Better::Higher, self.memory)];
        let measured = SamplesMeasured {
            samples,
            times: self.times.clone(),
            host: Some(host),
            observed: Some(self.observed.clone()),
            ..SamplesMeasured::default()
        };
        let key = |repetition| SamplesKey { side: "memory".into(), repetition };
        (0..2)
            .map(|repetition| SamplesRecord::new(key(repetition), 0, Status::measured(measured.clone())))
            .collect()
    }

    fn run(&self) -> (Provenance, PlatformPlan) {
        let domain = PlatformDomain {
            name: "memory".into(),
            runs: Vec::new(),
            takes_ns: 0,
            absolute: false,
            left_out: None,
        };
        let plan = PlatformPlan {
            profile: "minute".into(),
            domains: vec![domain],
            repetitions: 2,
            weights: [].into(),
            accelerator: "kvm".into(),
            environments: Vec::new(),
            reference: None,
            seed: 1,
        };
        let mut provenance = virtbench_samples::grid::described(Plan::Platform(plan.clone()));
        provenance.host.tuning = Some(self.tuning.clone());
        (provenance, plan)
    }

    fn insights(&self) -> Vec<Insight> {
        let (provenance, plan) = self.run();
        let records = self.records();
        insights(&provenance, &records, &score_platform(&plan, &records))
    }

    /// The only rule that fires, and what it says.
    fn fires(&self) -> (&'static str, Finding) {
        let mut fired = self.insights().into_iter().filter_map(|insight| match insight.outcome {
            Outcome::Fires(finding) => Some((insight.looks_for, finding)),
            _ => None,
        });
        let first = fired.next().expect("a rule fires");
        assert!(fired.next().is_none(), "and no other");
        first
    }
}

fn value(finding: &Finding, what: &str) -> f64 {
    finding.evidence.iter().find(|one| one.what.contains(what)).unwrap_or_else(|| panic!("{finding:?}")).value
}

#[test]
fn a_clean_host_leaves_every_rule_silent() {
    for insight in clean().insights() {
        assert_eq!(insight.outcome, Outcome::Silent, "{}", insight.looks_for);
    }
    assert!(advice(&clean().records(), &clean().insights()).is_empty());
}

#[test]
fn what_cannot_be_looked_for_says_why_and_does_not_fire() {
    let nothing = Case {
        tuning: HostTuning::default(),
        observed: PlatformObserved::default(),
        steal_percent: 0.0,
        memory: 0.3,
        times: Vec::new(),
    };
    for insight in nothing.insights() {
        let is_known = insight.looks_for.starts_with("steal");
        match insight.outcome {
            Outcome::Unavailable(why) => assert!(!is_known && !why.is_empty()),
            Outcome::Silent => assert!(is_known, "{}", insight.looks_for),
            Outcome::Fires(finding) => panic!("{finding:?}"),
        }
    }
}

#[test]
fn memory_of_another_node_is_found_by_where_it_was_given_and_by_what_moved() {
    let mut case = clean();
    case.observed.numa = Some(NumaPages { local: 80, remote: 20, migrated: 0 });
    let (name, finding) = case.fires();
    assert!(
        name.contains("NUMA") && (value(&finding, "given on another") - 20.0).abs() < 1e-9,
        "{finding:?}"
    );
    case.observed.numa = Some(NumaPages { local: 1000, remote: 0, migrated: 100 });
    assert_eq!(value(&case.fires().1, "moved"), 200.0);
    // With one node there is no other.
    case.tuning.numa_nodes = Some(1);
    assert!(case.insights().iter().all(|insight| insight.outcome == Outcome::Silent));
}

#[test]
fn two_common_times_in_a_guest_alone_are_interrupts_that_wait() {
    let mut case = clean();
    case.times[1] = times("tap: request", &[60, 400]);
    let (name, finding) = case.fires();
    assert!(name.contains("coalesced") && finding.evidence.len() == 2, "{finding:?}");
    assert!(finding.change.contains("ethtool"));
    // Natively the same: it is the network, and no guest.
    case.times[0] = times("native: request", &[20, 130]);
    assert!(case.insights().iter().all(|insight| insight.outcome == Outcome::Silent));
}

#[test]
fn a_short_queue_is_named_only_where_a_longer_one_does_more() {
    let mut case = clean();
    case.observed.disks.push(disk("lsi53c895a", 1, "write back", 40.0));
    let (name, finding) = case.fires();
    assert!(name.contains("queue depth") && value(&finding, "takes at once") == 1.0, "{finding:?}");
    assert!((finding.gain.unwrap() - 101.0 / 40.0).abs() < 1e-9 && finding.change.contains("nvme"));
    case.observed.disks[3] = disk("lsi53c895a", 1, "write back", 100.0);
    assert!(case.insights().iter().all(|insight| insight.outcome == Outcome::Silent));
}

#[test]
fn write_through_is_named_with_what_the_same_adapter_does_without() {
    let mut case = clean();
    case.observed.disks[2] = disk("virtio-blk,cache=writethrough", 256, "write through", 25.0);
    let (name, finding) = case.fires();
    assert!(
        name.starts_with("write-through") && finding.gain.is_some_and(|gain| (gain - 4.0).abs() < 1e-9),
        "{finding:?}"
    );
}

#[test]
fn a_clock_that_costs_is_named_and_the_cheap_one_where_there_is_it() {
    let mut case = clean();
    case.tuning.clock = Some(ClockFacts { source: "hpet".into(), others: vec!["tsc".into()], read_ns: 1200 });
    let (_, finding) = case.fires();
    assert!(value(&finding, "hpet") == 1200.0 && finding.change.contains("clocksource=tsc"), "{finding:?}");
    case.tuning.clock = Some(ClockFacts { source: "hpet".into(), others: Vec::new(), read_ns: 1200 });
    assert!(!case.fires().1.change.contains("clocksource="));
}

#[test]
fn small_pages_matter_where_memory_is_slow() {
    let mut case = clean();
    case.tuning.transparent_huge_pages = Some("never".into());
    assert!(case.insights().iter().all(|insight| insight.outcome == Outcome::Silent), "memory is fast");
    case.memory = 0.6;
    let (name, finding) = case.fires();
    assert!(name == "small pages" && (value(&finding, "never") - 0.6).abs() < 1e-9, "{finding:?}");
}

#[test]
fn merging_counts_while_it_spares_something() {
    let mut case = clean();
    case.tuning.ksm = Some(KsmFacts { runs: true, sharing_pages: 0 });
    assert!(case.insights().iter().all(|insight| insight.outcome == Outcome::Silent));
    case.tuning.ksm = Some(KsmFacts { runs: true, sharing_pages: 2560 });
    assert_eq!(value(&case.fires().1, "KSM"), 10.0);
}

#[test]
fn steal_and_changing_frequencies_are_told_with_how_much() {
    let mut case = clean();
    let processors = f64::from(host_use(1.0, 1.0, 0.0).processors);
    case.steal_percent = 5.0 * processors;
    let (name, finding) = case.fires();
    assert!(name.starts_with("steal") && (value(&finding, "on average") - 5.0).abs() < 1e-9, "{finding:?}");
    let mut case = clean();
    case.observed.frequency_mhz = Some([1200, 3000]);
    let (name, finding) = case.fires();
    assert!(name.contains("frequency") && value(&finding, "least") == 1200.0, "{finding:?}");
}

#[test]
fn what_was_measured_to_help_most_is_advised_first() {
    let mut case = clean();
    case.observed.disks[1] = disk("nvme", 1024, "write back", 150.0);
    case.observed.disks[2] = disk("virtio-blk,cache=writethrough", 256, "write through", 25.0);
    case.tuning.ksm = Some(KsmFacts { runs: true, sharing_pages: 2560 });
    let all = advice(&case.records(), &case.insights());
    let gains: Vec<Option<f64>> = all.iter().map(|one| one.gain).collect();
    assert_eq!(gains.len(), 3, "{all:?}");
    assert!((gains[0].unwrap() - 4.0).abs() < 1e-9 && (gains[1].unwrap() - 1.5).abs() < 1e-9, "{all:?}");
    assert!(all[1].sentence.contains("nvme") && gains[2].is_none());
}

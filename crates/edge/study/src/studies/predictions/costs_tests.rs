use std::sync::atomic::AtomicBool;

use virtbench_record::{Better, Metric};

use super::*;
use crate::fake_machine::FakeMachine;

/// A round of pieces: of each flushed write its time and that of processors, in nanoseconds; all else takes 1 us.
fn round(flushes: &[(f64, f64)]) -> WorkloadOutcome {
    let mut metrics = Vec::new();
    let mut add = |name: &str, ns: f64| metrics.extend(Metric::new(name, "ns", Better::Lower, vec![ns]));
    let mut flushes = flushes.iter();
    for kernel in SystemKernel::ALL {
        let (elapsed_ns, cpu_ns) = match kernel.part() {
            SystemPart::Wait => *flushes.next().unwrap(),
            _ => (1_000.0, 1_000.0),
        };
        add(kernel.name(), elapsed_ns);
        add(&format!("{} cpu", kernel.name()), cpu_ns);
    }
    for kernel in CpuKernel::ALL {
        add(kernel.name(), 1e6);
    }
    WorkloadOutcome {
        metrics,
        runs: 1,
        operations: 1,
        bytes: 0,
        latency_ns: None,
        histogram: None,
        errors: 0,
        error_kinds: Default::default(),
        elapsed_ns: 1,
        interrupted: false,
        threads: 1,
        own_cpu_ns: [0, 0],
        steal_ns: None,
        footprint: None,
        command: None,
        intervals: Vec::new(),
        spec: parse_workload(SUITES[1]).unwrap(),
        notes: Vec::new(),
    }
}

fn suites_of(rounds: &[[(f64, f64); 2]]) -> Suites {
    let all: Vec<WorkloadOutcome> = rounds.iter().map(|flushes| round(flushes)).collect();
    [all.clone(), all]
}

fn waits(costs: &[Cost]) -> Vec<(f64, f64)> {
    let of_part = costs.iter().filter(|cost| cost.part == CostPart::Wait);
    of_part.map(|cost| (cost.reference_ns, cost.subject_ns)).collect()
}

#[test]
fn a_wait_below_the_grain_of_accounts_is_not_measured() {
    // 4.96 ms natively; in the VM the kernel's threads are said to have computed all the time, or longer.
    let native = [(4_960_000.0, 100_000.0), (4_960_000.0, 100_000.0)];
    let vm = [(9_000_000.0, 9_100_000.0), (9_000_000.0, 4_000_000.0)];
    let (costs, left_out) = pieces(&suites_of(&[native; 3]), &suites_of(&[vm; 3]));
    assert_eq!(waits(&costs), [(4_860_000.0, 5_000_000.0)], "and not 1,000 ns");
    assert_eq!(left_out.len(), 1);
    assert!(left_out[0].why.contains("shorter than"), "{left_out:?}");
}

#[test]
fn a_wait_that_most_rounds_cannot_tell_is_not_measured() {
    let told = [(300_000.0, 0.0); 2];
    // A thirtieth of the time is one tick over all repetitions.
    let not_told = [(300_000.0, 290_001.0); 2];
    let barely = [(300_000.0, 289_999.0); 2];
    let of = |rounds: [[(f64, f64); 2]; 3]| {
        waits(&pieces(&suites_of(&[told; 3]), &suites_of(&rounds)).0).first().map(|(_, vm_ns)| *vm_ns)
    };
    assert_eq!(of([told, not_told, not_told]), None);
    assert_eq!(of([told, told, not_told]), Some(300_000.0));
    assert_eq!(of([barely; 3]), Some(10_001.0));
}

#[test]
fn costs_that_cannot_be_are_not_read() {
    assert!(parse_costs(b"{").unwrap_err().contains("EOF"));
}

#[test]
fn a_machine_that_dies_and_a_stop_leave_no_references_rather_than_some() {
    let all = runnable(&toml::from_str(REFERENCES).unwrap()).unwrap();
    for stopped in [false, true] {
        let stop = AtomicBool::new(stopped);
        let mut said = Vec::new();
        let mut progress = Progress { stop: &stop, observer: &mut said };
        // Its agent hangs up.
        let mut machine = WorkloadMachine::new(FakeMachine::boxed(drop));
        let error = rounds(&mut machine, None, &all, &mut progress).err().unwrap();
        assert_eq!(matches!(error, ApplicationsError::Stopped), stopped, "{error}");
        assert_eq!(matches!(error, ApplicationsError::Machine(_)), !stopped, "{error}");
        assert_eq!(said.len(), 1, "the others are not tried: {said:?}");
    }
}

#[test]
fn the_references_can_be_read_and_each_has_a_name_of_its_own() {
    let file: References = toml::from_str(REFERENCES).unwrap();
    let all = runnable(&file).unwrap();
    let names: std::collections::BTreeSet<&str> = all.iter().map(|one| one.name.as_str()).collect();
    assert!(names.len() == all.len() && all.len() >= 12);
    for one in &all {
        one.spec.validate().unwrap();
    }
}

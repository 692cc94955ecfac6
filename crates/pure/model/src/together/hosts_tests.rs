use super::super::test_support::{member, provenance, record, set, workload};
use super::*;
use virtbench_record::{MemberStart, MemberStatus, Plan, Provenance, SetRole};
use virtbench_samples::host::host_use;

/// Two machines in `metal`, one on this host.
fn housed() -> Provenance {
    let mut facts = provenance(2, 1, vec![set("3", SetRole::Together, 3, None)]);
    if let Plan::Neighbours(plan) = &mut facts.plan {
        let home = |vm: &str, environment: &str| Home {
            vm: vm.into(),
            environment: environment.into(),
            uri: format!("ssh://{environment}/srv"),
        };
        plan.homes = vec![home("vm1", "metal"), home("vm2", "metal"), home("vm3", "here")];
    }
    facts
}

fn measured(vm: usize, late_ns: i64, cpu: Option<(f64, f64)>) -> MemberRecord {
    let mut member = member(vm, workload(&[1.0]));
    if let MemberStatus::Measured(measured) = &mut member.status {
        let (offset_uncertainty_ns, offsets_measured) = (1_000, 2);
        measured.start =
            Some(MemberStart { late_ns, offset_uncertainty_ns, clock_jump_ns: None, offsets_measured });
        measured.host = cpu.map(|(cpu_percent, others_percent)| HostUse {
            others_percent: Some(others_percent),
            processors: 4,
            ..host_use(cpu_percent, cpu_percent, 0.0)
        });
        if let virtbench_record::JobOutcome::Workload(workload) = &mut measured.outcome {
            // Half a processor for a second.
            (workload.own_cpu_ns, workload.elapsed_ns) = ([400_000_000, 100_000_000], 1_000_000_000);
        }
    }
    member
}

#[test]
fn machines_of_one_host_are_no_other_programs_to_each_other_and_this_host_is_not_theirs() {
    let facts = housed();
    let plan = facts.plan.colocation().unwrap();
    let members =
        vec![measured(1, 5, Some((200.0, 60.0))), measured(2, -9, Some((210.0, 70.0))), measured(3, 0, None)];
    let record = record("3", 0, 100.0, members);
    let hosts = far_hosts(plan, &record);
    assert_eq!(hosts.len(), 1, "{hosts:?}");
    let (name, host) = &hosts[0];
    assert_eq!((*name, host.cpu_percent, host.processors), ("metal", 200.0, 4));
    assert!((host.others_percent.unwrap() - 10.0).abs() < 1e-9, "{host:?}");
    let numbers = machine_numbers(plan, &[record]);
    let late: Vec<Option<i64>> = numbers.iter().map(|one| one.late_ns).collect();
    assert_eq!(late, [Some(5), Some(-9), Some(0)]);
    assert_eq!((numbers[1].processors, numbers[1].environment.as_str()), (Some(4), "metal"));
    assert_eq!((numbers[2].cpu_percent, numbers[2].measured), (None, 1));
}

#[test]
fn other_programs_on_a_far_host_that_is_out_of_processors_leave_no_finding() {
    use super::{Overload, overload};

    let facts = housed();
    let judged = |cpu: f64, others: f64| {
        let members = vec![measured(1, 0, Some((cpu, others))), measured(3, 0, None)];
        overload(&facts, &[&record("3", 0, 10.0, members)])
    };
    assert_eq!(judged(400.0, 100.0), Some(Overload::Others));
    assert_eq!(judged(400.0, 4.0), None, "busy with what was asked for");
    assert_eq!(judged(300.0, 100.0), None);
}

#[test]
fn a_machine_that_failed_is_counted() {
    let facts = housed();
    let failed = MemberStatus::Failed { why: "ssh was killed".into() };
    let members = vec![MemberRecord { vm: "vm1".into(), status: failed }, measured(2, 7, None)];
    let numbers = machine_numbers(facts.plan.colocation().unwrap(), &[record("3", 0, 10.0, members)]);
    assert_eq!((numbers[0].measured, numbers[0].without_figures, numbers[0].late_ns), (0, 1, None));
}

use super::*;
use crate::provenance::DiskFacts;

fn costs() -> Costs {
    let cost = |name: &str, part, reference_ns, subject_ns| Cost {
        name: name.into(),
        part,
        reference_ns,
        subject_ns,
    };
    Costs {
        costs_format: COSTS_FORMAT,
        origin: None,
        host: HostFacts {
            kernel: String::new(),
            distribution: String::new(),
            cpu: String::new(),
            processors: 2,
            memory_bytes: 1,
            hypervisor: None,
            virtualization: None,
            tuning: None,
            disk: DiskFacts::default(),
        },
        adapter: "virtio-blk".into(),
        accelerator: "tcg".into(),
        vcpus: 2,
        costs: vec![
            cost("integers", CostPart::User, 100.0, 1_000.0),
            cost("open", CostPart::System, 1_000.0, 20_000.0),
            cost("copy", CostPart::Copy, 0.1, 0.2),
            cost("flush", CostPart::Wait, 4_960_000.0, 5_000_000.0),
        ],
        crowded: Vec::new(),
        references: Vec::new(),
        left_out: Vec::new(),
    }
}

#[test]
fn costs_for_other_hosts_say_where_they_are_from_and_keep_what_takes_time() {
    let run = |functions: &[(&str, u64)]| ReferenceRun {
        per_second: 10.0,
        footprint: Footprint {
            functions: functions.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect(),
            ..Footprint::default()
        },
    };
    let reference = run(&[("vfs_read", 900_000), ("dput", 99_000), ("kfree", 600), ("cap_capable", 400)]);
    let one = Reference { name: "tar".into(), workers: 1, reference, subject: run(&[]) };
    let origin = CostsOrigin { platform: "kvm-mine".into(), measured: "2026-11-30".into() };
    let exported = Costs { references: vec![one], ..costs() }.exported(origin.clone());
    let kept: Vec<(&str, u64)> = exported.references[0]
        .reference
        .footprint
        .functions
        .iter()
        .map(|(name, ns)| (name.as_str(), *ns))
        .collect();
    assert_eq!(kept, [("dput", 99_000), ("others", 1_000), ("vfs_read", 900_000)]);
    assert_eq!(exported.origin, Some(origin));
}

#[test]
fn a_factor_that_no_vm_has_is_refused_with_its_source() {
    costs().check().unwrap();
    // What the grain of the kernel's accounts once made of a flush.
    let mut wrong = costs();
    wrong.costs[3].subject_ns = 1_000.0;
    let said = wrong.check().unwrap_err().to_string();
    assert!(said.starts_with("flush: 1000 ns in the VM are 4960 times shorter"), "{said}");
    wrong.costs[3].subject_ns = 4_960_000.0 / 110.0;
    assert!(wrong.check().unwrap_err().to_string().contains("110 times shorter"));
    let mut fast = costs();
    fast.costs[0].subject_ns = 20.0;
    assert!(fast.check().unwrap_err().to_string().starts_with("integers: 20 ns"));
    let mut slow = costs();
    slow.crowded.push(Cost { subject_ns: 1e8, ..slow.costs[0].clone() });
    assert!(slow.check().unwrap_err().to_string().contains("1000000 times longer"));
}

#[test]
fn a_reference_ten_times_as_fast_in_the_vm_is_refused() {
    let run = |per_second| ReferenceRun { per_second, footprint: Footprint::default() };
    let with = |natively, there| {
        let one = Reference { name: "tar".into(), workers: 1, reference: run(natively), subject: run(there) };
        Costs { references: vec![one], ..costs() }
    };
    with(10.0, 1.0).check().unwrap();
    assert!(with(1.0, 11.0).check().unwrap_err().to_string().starts_with("tar:"));
    assert!(with(0.0, 11.0).check().unwrap_err().to_string().contains("no rate"));
}

#[test]
fn waiting_may_be_missing_and_what_is_missing_is_said() {
    let mut costs = costs();
    assert_eq!(costs.caution(), None);
    costs.costs.pop();
    costs.left_out.push(LeftOut { name: "flush".into(), why: "too short".into() });
    costs.check().unwrap();
    assert!(costs.caution().unwrap().contains("flush"));
    costs.costs.pop();
    assert!(costs.check().unwrap_err().to_string().contains("Copy"));
}

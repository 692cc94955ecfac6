use super::*;
use virtbench_record::MemberPlan;

fn set(name: &str, role: SetRole) -> SetPlan {
    let members = vec![MemberPlan { vm: "vm1".into(), workload: 0, share_percent: None }];
    SetPlan { name: name.into(), role, members }
}

#[test]
fn saturation_comes_first_and_every_set_once_a_repetition() {
    let sets = vec![
        set("a", SetRole::Alone),
        set("s", SetRole::Saturation),
        set("b", SetRole::Together),
        set("c", SetRole::Together),
    ];
    let plan = TogetherPlan {
        workloads: vec!["memory".into()],
        sets,
        vcpus: 1,
        memory_bytes: 1,
        pinned: false,
        disk: "virtio-blk".into(),
        filesystem: None,
    };
    let steps = schedule_sets(&plan, 4, 1);
    assert_eq!(steps.len(), 16);
    assert!(steps[..4].iter().all(|step| step.set == 1));
    for repetition in steps[4..].chunks(3) {
        let sets: BTreeSet<usize> = repetition.iter().map(|step| step.set).collect();
        assert_eq!(sets, BTreeSet::from([0, 2, 3]));
    }
    assert_eq!(steps, schedule_sets(&plan, 4, 1));
    assert_ne!(steps, schedule_sets(&plan, 4, 2));
}

#[test]
fn a_set_that_cannot_start_says_whose_fault_it_is() {
    let mut two = set("2", SetRole::Together);
    two.members.push(MemberPlan { vm: "vm2".into(), workload: 0, share_percent: None });
    let record = unavailable(&two, 0, 1, "vm2", "no room");
    let why = |index: usize| match &record.members[index].status {
        MemberStatus::Unavailable { why } => why.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((why(0).as_str(), why(1).as_str()), ("vm2 could not start: no room", "no room"));
    assert!(!record.is_whole());
}

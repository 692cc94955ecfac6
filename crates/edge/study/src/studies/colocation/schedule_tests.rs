use super::*;
use virtbench_record::{MemberPlan, SetPlan};

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
    let plan = ColocationPlan {
        workloads: vec!["memory".into()],
        sets,
        repetitions: 4,
        ramp_ns: 0,
        time_ns: 1,
        vcpus: 1,
        memory_bytes: 1,
        pinned: false,
        disk: "virtio-blk".into(),
        size_bytes: 1,
        filesystem: None,
        seed: 1,
        homes: Vec::new(),
    };
    let steps = schedule_sets(&plan);
    assert_eq!(steps.len(), 16);
    assert!(steps[..4].iter().all(|step| step.set == 1));
    for repetition in steps[4..].chunks(3) {
        let sets: BTreeSet<usize> = repetition.iter().map(|step| step.set).collect();
        assert_eq!(sets, BTreeSet::from([0, 2, 3]));
    }
    assert_eq!(steps, schedule_sets(&plan));
    assert_ne!(steps, schedule_sets(&ColocationPlan { seed: 2, ..plan }));
}

use super::*;
use virtbench_record::{MemberPlan, SetRole};

#[test]
fn a_set_that_cannot_start_says_whose_fault_it_is() {
    let member = |vm: &str| MemberPlan { vm: vm.into(), workload: 0, share_percent: None };
    let two =
        SetPlan { name: "2".into(), role: SetRole::Together, members: vec![member("vm1"), member("vm2")] };
    let record = unavailable(&two, 0, 1, "vm2", "no room");
    let why = |index: usize| match &record.members[index].status {
        MemberStatus::Unavailable { why } => why.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((why(0).as_str(), why(1).as_str()), ("vm2 could not start: no room", "no room"));
    assert!(!record.is_whole());
}

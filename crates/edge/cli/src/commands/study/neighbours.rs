//! `virtbench study neighbours`

use virtbench_record::{MemberPlan, RunKind, SetPlan, SetRole};

use super::sets::SetStudy;
use super::sets_summary;
use crate::args::NeighboursArgs;
use crate::exit::Outcome;

/// Measures, then says what came of it, also of what an interrupted or failed run has measured.
pub fn execute(args: &NeighboursArgs) -> Outcome {
    let mut numbers = args.vms.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let study = SetStudy {
        kind: RunKind::Neighbours,
        name: "neighbours",
        args: &args.sets,
        time_ns: args.sets.time,
        ramp_ns: args.sets.ramp,
        vcpus: args.vcpus,
        memory_bytes: args.memory,
        jobs: vec![args.workload.clone()],
        sets: numbers.into_iter().map(set_of).collect(),
    };
    study.execute(|out| sets_summary::show(out, args.sets.json))
}

/// So many VMs that do the same.
fn set_of(vms: u32) -> SetPlan {
    let member = |number| MemberPlan { vm: format!("vm{number}"), workload: 0, share_percent: None };
    SetPlan {
        name: vms.to_string(),
        role: if vms == 1 { SetRole::Alone } else { SetRole::Together },
        members: (1..=vms).map(member).collect(),
    }
}

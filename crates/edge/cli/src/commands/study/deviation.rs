//! `virtbench study deviation`

use virtbench_record::{MemberPlan, RunKind, SetPlan, SetRole};
use virtbench_study::takes_a_rate;

use super::sets::SetStudy;
use super::sets_summary;
use crate::args::{DeviationArgs, SaturatingArg, SetsArgs};
use crate::exit::{Failure, Kind, Outcome};

/// How long is measured when nothing is said: everything that runs together runs as long.
const TIME_NS: u64 = 20_000_000_000;
/// How long each runs before: so that all of them run while each is measured.
const RAMP_NS: u64 = 1_000_000_000;
/// The most workloads of a matrix: 20 of them are 250 sets.
const MAX_WORKLOADS: usize = 20;

/// Measures, then says what came of it, also of what an interrupted or failed run has measured.
pub fn execute(args: &DeviationArgs) -> Outcome {
    study(args, &args.sets)?.execute(|out| sets_summary::show(out, args.sets.json))
}

/// The study, with its machines and folder as `sets` has them.
pub fn study<'a>(args: &DeviationArgs, sets: &'a SetsArgs) -> Result<SetStudy<'a>, Failure> {
    Ok(SetStudy {
        kind: RunKind::Deviation,
        name: "deviation",
        args: sets,
        time_ns: sets.time.or(Some(TIME_NS)),
        ramp_ns: sets.ramp.or(Some(RAMP_NS)),
        vcpus: args.vcpus,
        memory_bytes: args.memory,
        jobs: args.workload.clone(),
        sets: if args.matrix { matrix(args)? } else { pattern(args)? },
    })
}

fn one(name: String, role: SetRole, member: MemberPlan) -> SetPlan {
    SetPlan { name, role, members: vec![member] }
}

/// Saturation, each VM alone at its share, all together ([VirtualFence 2013], section 4.3).
fn pattern(args: &DeviationArgs) -> Result<Vec<SetPlan>, Failure> {
    let [job] = args.workload.as_slice() else {
        return Err(Failure::message(
            Kind::Usage,
            "--pattern is of one --workload; give --matrix to set several against each other",
        ));
    };
    if !takes_a_rate(&job.spec) {
        return Err(Failure::message(
            Kind::Usage,
            format!(
                "{} cannot run at a share of its saturation: take a load, fileserver, mailserver, webserver, a \
                 model or dbench, or give --matrix",
                job.name
            ),
        ));
    }
    let member = |(index, share): (usize, &f64)| MemberPlan {
        vm: format!("vm{}", index + 1),
        workload: 0,
        share_percent: Some(*share),
    };
    let members: Vec<MemberPlan> = args.pattern.0.iter().enumerate().map(member).collect();
    let systems = !args.systems.is_empty();
    let all = args.saturating.map_or(systems, |who| who == SaturatingArg::All);
    let seeking = members.iter().take(if all { members.len() } else { 1 });
    let seeking = seeking.map(|member| MemberPlan { share_percent: None, ..member.clone() }).collect();
    let mut sets = vec![SetPlan { name: "saturation".into(), role: SetRole::Saturation, members: seeking }];
    let alone = |member: &MemberPlan| one(format!("{}-alone", member.vm), SetRole::Alone, member.clone());
    sets.extend(members.iter().map(alone));
    sets.push(SetPlan { name: "together".into(), role: SetRole::Together, members });
    Ok(sets)
}

/// Each workload alone in each of two VMs, then each beside each.
fn matrix(args: &DeviationArgs) -> Result<Vec<SetPlan>, Failure> {
    let count = args.workload.len();
    if !(2..=MAX_WORKLOADS).contains(&count) {
        return Err(Failure::message(
            Kind::Usage,
            format!("{count} workloads make no matrix: name 2 to {MAX_WORKLOADS} with --workload"),
        ));
    }
    let member =
        |vm: usize, workload: usize| MemberPlan { vm: format!("vm{vm}"), workload, share_percent: None };
    let mut sets = Vec::new();
    for vm in [1, 2] {
        for workload in 0..count {
            let name = format!("vm{vm}-workload{}-alone", workload + 1);
            sets.push(one(name, SetRole::Alone, member(vm, workload)));
        }
    }
    for first in 0..count {
        for second in first..count {
            sets.push(SetPlan {
                name: format!("workload{}-beside-workload{}", first + 1, second + 1),
                role: SetRole::Together,
                members: vec![member(1, first), member(2, second)],
            });
        }
    }
    Ok(sets)
}

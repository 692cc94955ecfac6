//! Who runs beside whom: the sets of each kind of study.

use virtbench_record::{MemberPlan, SetPlan, SetRole};
use virtbench_workload::JobSpec;

use super::share::at_share;

/// The most workloads of a matrix: 20 of them are 250 sets.
const MAX_WORKLOADS: usize = 20;

/// Which machines run while saturation is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saturating {
    /// The first, alone.
    One,
    /// All at once: what they do together.
    All,
}

/// Whether a job can be held to a rate.
#[must_use]
pub fn takes_a_rate(job: &JobSpec) -> bool {
    at_share(job.clone(), 1.0, 1.0).is_some()
}

fn one(name: String, role: SetRole, member: MemberPlan) -> SetPlan {
    SetPlan { name, role, members: vec![member] }
}

/// So many machines that do the same, for each number.
pub(super) fn neighbours(vms: &[u32]) -> Vec<SetPlan> {
    let mut numbers = vms.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    let member = |number| MemberPlan { vm: format!("vm{number}"), workload: 0, share_percent: None };
    let set = |vms: u32| SetPlan {
        name: vms.to_string(),
        role: if vms == 1 { SetRole::Alone } else { SetRole::Together },
        members: (1..=vms).map(member).collect(),
    };
    numbers.into_iter().map(set).collect()
}

/// Saturation, each machine alone at its share, all together ([VirtualFence 2013], section 4.3).
///
/// # Errors
/// The job cannot be held to a rate, in words.
pub(super) fn pattern(
    name: &str,
    job: &JobSpec,
    shares: &[f64],
    saturating: Saturating,
) -> Result<Vec<SetPlan>, String> {
    if !takes_a_rate(job) {
        return Err(format!(
            "{name} cannot run at a share of its saturation: take a load, fileserver, mailserver, webserver, a \
             model or dbench, or give --matrix"
        ));
    }
    let member = |(index, share): (usize, &f64)| MemberPlan {
        vm: format!("vm{}", index + 1),
        workload: 0,
        share_percent: Some(*share),
    };
    let members: Vec<MemberPlan> = shares.iter().enumerate().map(member).collect();
    let all = saturating == Saturating::All;
    let seeking = members.iter().take(if all { members.len() } else { 1 });
    let seeking = seeking.map(|member| MemberPlan { share_percent: None, ..member.clone() }).collect();
    let mut sets = vec![SetPlan { name: "saturation".into(), role: SetRole::Saturation, members: seeking }];
    let alone = |member: &MemberPlan| one(format!("{}-alone", member.vm), SetRole::Alone, member.clone());
    sets.extend(members.iter().map(alone));
    sets.push(SetPlan { name: "together".into(), role: SetRole::Together, members });
    Ok(sets)
}

/// Each of so many workloads alone in each of two machines, then each beside each.
///
/// # Errors
/// There are too few or too many, in words.
pub(super) fn matrix(workloads: usize) -> Result<Vec<SetPlan>, String> {
    if !(2..=MAX_WORKLOADS).contains(&workloads) {
        return Err(format!(
            "{workloads} workloads make no matrix: name 2 to {MAX_WORKLOADS} with --workload"
        ));
    }
    let member =
        |vm: usize, workload: usize| MemberPlan { vm: format!("vm{vm}"), workload, share_percent: None };
    let mut sets = Vec::new();
    for vm in [1, 2] {
        for workload in 0..workloads {
            let name = format!("vm{vm}-workload{}-alone", workload + 1);
            sets.push(one(name, SetRole::Alone, member(vm, workload)));
        }
    }
    for first in 0..workloads {
        for second in first..workloads {
            sets.push(SetPlan {
                name: format!("workload{}-beside-workload{}", first + 1, second + 1),
                role: SetRole::Together,
                members: vec![member(1, first), member(2, second)],
            });
        }
    }
    Ok(sets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_neighbours_is_one_set() {
        let names: Vec<String> = neighbours(&[3, 1, 3]).into_iter().map(|set| set.name).collect();
        assert_eq!(names, ["1", "3"]);
    }

    #[test]
    fn a_matrix_has_each_alone_in_both_machines_and_each_pair_once() {
        let sets = matrix(3).unwrap();
        let of_role = |role| sets.iter().filter(|set| set.role == role).count();
        assert_eq!((of_role(SetRole::Alone), of_role(SetRole::Together)), (6, 6));
        assert_eq!(matrix(MAX_WORKLOADS).unwrap().len(), 250);
        assert!(matrix(1).unwrap_err().contains("1 workloads"));
    }
}

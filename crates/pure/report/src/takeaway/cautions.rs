//! What a careful reader must know before using the figures, among it what the plan asked for and the run has not.

use std::collections::{BTreeMap, BTreeSet};

use virtbench_model::busy_host;
use virtbench_record::{GuestFacts, HostFacts, IN_MEMORY, Measured, PointKey, Provenance, TargetKind};

use crate::format::{count, significant};
use crate::run::Environments;

/// How the edition of a Windows begins that is Wine.
const WINE: &str = "Wine ";

/// Every caution that applies, the one that weighs most first.
pub(crate) fn all(environments: &Environments<'_>) -> Vec<String> {
    let mut cautions = Vec::new();
    cautions.extend(emulation(environments.provenance));
    cautions.extend(in_memory(environments.provenance));
    cautions.extend(busy(environments));
    cautions.extend(missing(environments));
    cautions.extend(unavailable(environments));
    cautions.extend(stalled(environments));
    cautions.extend(suspect_clocks(environments));
    cautions.extend(errors(environments));
    cautions.extend(interrupted(environments));
    cautions.extend(cached(environments));
    cautions.extend(nested(environments));
    cautions
}

/// Whether the guest's instructions were emulated in software.
pub(crate) fn is_emulated(provenance: &Provenance) -> bool {
    let elsewhere = provenance.machines.iter().filter_map(|machine| machine.guest.as_ref());
    let mut guests = provenance.guest.iter().chain(&provenance.other_guests).chain(elsewhere);
    guests.any(|guest| guest.accelerator.name.eq_ignore_ascii_case("tcg"))
}

/// The guest of User Mode Linux that was measured, if one was.
pub(crate) fn uml_guest(provenance: &Provenance) -> Option<&GuestFacts> {
    let mut guests = provenance.guest.iter().chain(&provenance.other_guests);
    guests.find(|guest| guest.accelerator.name == "uml")
}

/// What the figures of a machine do not say, by what executes it: software that emulates a processor or a system, or a KVM without hardware of its own.
pub(crate) fn emulation(provenance: &Provenance) -> Option<String> {
    const EMULATED: &str = "TCG emulates the guest's processor in software: figures of the VM describe emulation, not the overhead of \
                            virtualization.";
    let emulated = is_emulated(provenance).then(|| EMULATED.to_owned());
    let without_kvm: Vec<String> =
        emulated.into_iter().chain(uml(provenance)).chain(wine(provenance)).collect();
    if !without_kvm.is_empty() {
        return Some(without_kvm.join(" "));
    }
    let here = provenance.guest.iter().map(|guest| (guest, &provenance.host));
    let elsewhere =
        provenance.machines.iter().filter_map(|machine| Some((machine.guest.as_ref()?, &machine.facts)));
    here.chain(elsewhere).find_map(|(guest, host)| unusual_kvm(guest, host))
}

/// That machines which stand for Windows are none; nothing where there is no such machine.
pub(crate) fn wine(provenance: &Provenance) -> Option<String> {
    let machines = provenance.machines.iter().filter(|machine| machine.facts.distribution.starts_with(WINE));
    let names: BTreeSet<&str> = machines.map(|machine| machine.environment.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let are = match names.len() {
        0 => return None,
        1 => "is",
        _ => "are",
    };
    Some(format!("{} {are} Wine on Linux, not Windows: these figures describe Wine.", names.join(", ")))
}

/// What guests of User Mode Linux are, with what crossing into their kernel costs; nothing where there is none.
fn uml(provenance: &Provenance) -> Option<String> {
    let guest = uml_guest(provenance)?;
    let cost = guest.crossing.zip(provenance.crossing).map_or_else(String::new, |(guest, host)| {
        let us = |ns: u64| significant(ns as f64 / 1e3);
        format!(
            ": a system call takes {} us (natively {}), the first write to a page {} us (natively {})",
            us(guest.system_call_ns),
            us(host.system_call_ns),
            us(guest.page_fault_ns),
            us(host.page_fault_ns)
        )
    });
    Some(format!(
        "User Mode Linux runs the guest's user code on the processor itself; each of its system calls, page faults and interrupts \
         passes another process{cost}. Figures of the VM describe that price."
    ))
}

/// What a KVM is that has no processor of its own to execute guests: one below another hypervisor, or without VMX and SVM.
fn unusual_kvm(guest: &GuestFacts, host: &HostFacts) -> Option<String> {
    if !guest.accelerator.name.eq_ignore_ascii_case("kvm") {
        return None;
    }
    let below = host.hypervisor.as_ref().map(|hypervisor| format!(" below {hypervisor}"));
    match (host.virtualization, below) {
        (Some(false), below) => Some(format!(
            "The processor offers KVM neither VMX nor SVM{}: KVM itself emulates the guest's kernel. Figures of the VM describe that, \
             not the overhead of virtualization.",
            below.unwrap_or_default()
        )),
        (_, Some(below)) => Some(format!(
            "KVM is nested{below}: what leaves a guest passes two hypervisors. Figures of the VM describe nested virtualization."
        )),
        (_, None) => None,
    }
}

/// That the disks were no disks.
pub(crate) fn in_memory(provenance: &Provenance) -> Option<String> {
    let note = provenance.notes.iter().find(|note| note.ends_with(IN_MEMORY))?;
    Some(format!("{note}."))
}

/// Whether other programs used the host.
fn busy(environments: &Environments<'_>) -> Option<String> {
    let hosts = environments.records.iter().filter_map(|record| Some(&record.measured()?.host));
    busy_host(hosts).map(|busy| busy.words())
}

/// What has no logarithm is in no ratio.
fn stalled(environments: &Environments<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for environment in &environments.all {
        let repetitions: usize = environment.sides.values().map(|side| side.stalled).sum();
        if repetitions > 0 {
            sentences.push(format!(
                "No operation completed {} in {}, at {}: ratios leave these out and are too kind to that side.",
                environment.phrase,
                count(repetitions, "repetition"),
                count(environment.points_where(|side| side.stalled > 0), "point")
            ));
        }
    }
    sentences
}

fn suspect_clocks(environments: &Environments<'_>) -> Option<String> {
    let points = environments.points_where(|side| side.suspect_clocks > 0);
    (points > 0).then(|| {
        format!(
            "The guest's clock ran more than 1 % off the host's at {}: their figures must not be trusted.",
            count(points, "point")
        )
    })
}

fn errors(environments: &Environments<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for environment in &environments.all {
        let failed = environment.sides.values().map(|side| side.errors).fold(0, u64::saturating_add);
        if failed == 0 {
            continue;
        }
        let points = environment.points_where(|side| side.errors > 0);
        let operations = match failed {
            1 => "1 operation".into(),
            many => format!("{many} operations"),
        };
        sentences.push(format!(
            "{operations} failed {}, at {}: throughput counts only what succeeded.",
            environment.phrase,
            count(points, "point")
        ));
    }
    sentences
}

fn interrupted(environments: &Environments<'_>) -> Option<String> {
    let points = environments.points_where(|side| side.interrupted > 0);
    (points > 0).then(|| format!("A measurement was stopped before its time at {}.", count(points, "point")))
}

fn cached(environments: &Environments<'_>) -> Vec<String> {
    let through_cache = |measured: &Measured| {
        let target = &measured.outcome.target;
        !target.direct && target.kind != TargetKind::Null
    };
    let mut sentences = Vec::new();
    for environment in &environments.all {
        let measurements = environments
            .records
            .iter()
            .filter(|record| record.environment == environment.name)
            .filter(|record| record.measured().is_some_and(through_cache))
            .count();
        if measurements > 0 {
            sentences.push(format!(
                "{} made {} went through the page cache, which measures memory as well as the disk.",
                count(measurements, "measurement"),
                environment.phrase
            ));
        }
    }
    sentences
}

fn nested(environments: &Environments<'_>) -> Option<String> {
    let hypervisor = environments.provenance.host.hypervisor.as_ref()?;
    let meaning = if environments.all.iter().any(|environment| environment.native) {
        "\"native\" means on this host"
    } else {
        "its CPU use is what it sees of its own processors"
    };
    Some(format!("The host is itself a virtual machine ({hypervisor}): {meaning}."))
}

/// Every point that was planned or recorded.
fn points(environments: &Environments<'_>) -> BTreeSet<PointKey> {
    let mut points: BTreeSet<PointKey> =
        environments.all.iter().flat_map(|environment| environment.sides.keys().copied()).collect();
    let Some(plan) = environments.provenance.plan.grid() else { return points };
    for &block_bytes in &plan.blocks_bytes {
        for &read_percent in &plan.read_percents {
            for &random_percent in &plan.random_percents {
                points.insert(PointKey { block_bytes, read_percent, random_percent });
            }
        }
    }
    points
}

/// Whether and how far the run is short of its plan. A point recorded as unavailable is not missing.
pub(super) fn missing(environments: &Environments<'_>) -> Option<String> {
    let recorded: BTreeSet<(PointKey, &str, u32)> = environments
        .records
        .iter()
        .filter(|record| environments.of_record(record).is_some())
        .map(|record| (record.point, record.environment.as_str(), record.repetition))
        .collect();
    let points = points(environments);
    let repetitions = environments.provenance.plan.grid().map_or(0, |plan| plan.repetitions);
    let planned = points.len() * environments.all.len() * repetitions as usize;
    let done = recorded.iter().filter(|(_, _, repetition)| *repetition < repetitions).count();
    (done < planned).then(|| {
        format!(
            "The run is incomplete: {} of {} missing, {} of {} compared.",
            planned - done,
            count(planned, "planned measurement"),
            environments.compared,
            count(points.len(), "point"),
        )
    })
}

/// One sentence for each environment and reason.
pub(super) fn unavailable(environments: &Environments<'_>) -> Vec<String> {
    let mut sentences = Vec::new();
    for environment in &environments.all {
        let mut reasons: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
        for side in environment.sides.values() {
            for why in &side.unavailable {
                reasons.entry(why).or_default()[usize::from(side.repetitions > 0)] += 1;
            }
        }
        for (why, [wholly, partly]) in reasons {
            let phrase = &environment.phrase;
            let why = why.trim_end_matches('.');
            if wholly > 0 {
                sentences.push(format!("{} could not be measured {phrase}: {why}.", count(wholly, "point")));
            }
            if partly > 0 {
                sentences.push(format!(
                    "Some repetitions of {} could not be measured {phrase}: {why}.",
                    count(partly, "point")
                ));
            }
        }
    }
    sentences
}

#[cfg(test)]
mod tests {
    use virtbench_samples::grid;

    use super::*;

    #[test]
    fn user_mode_linux_is_told_from_emulation() {
        let mut provenance = grid::provenance(grid::small_plan());
        let tcg = provenance.guest.clone().unwrap();
        provenance.guest.as_mut().unwrap().accelerator.name = "uml".into();
        let direct = emulation(&provenance).unwrap();
        assert!(direct.starts_with("User Mode Linux") && !direct.contains("TCG"), "{direct}");
        provenance.other_guests.push(tcg);
        let both = emulation(&provenance).unwrap();
        assert!(both.contains("TCG emulates") && both.contains("User Mode Linux"), "{both}");
    }

    #[test]
    fn what_kvm_is_decides_the_caution_and_not_its_name() {
        let mut provenance = grid::provenance(grid::small_plan());
        let mut caution = |accelerator: &str, hypervisor: Option<&str>, virtualization| {
            provenance.guest.as_mut().unwrap().accelerator.name = accelerator.into();
            provenance.host.hypervisor = hypervisor.map(str::to_owned);
            provenance.host.virtualization = virtualization;
            emulation(&provenance)
        };
        assert_eq!(caution("kvm", None, Some(true)), None);
        assert!(caution("tcg", None, Some(true)).unwrap().starts_with("TCG"));
        let nested = caution("kvm", Some("Hyper-V"), Some(true)).unwrap();
        assert!(nested.contains("nested below Hyper-V"), "{nested}");
        let emulated = caution("kvm", Some("KVM"), Some(false)).unwrap();
        assert!(emulated.contains("neither VMX nor SVM below KVM"), "{emulated}");
    }
}

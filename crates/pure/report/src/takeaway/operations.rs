//! What a reader takes away from a study of management operations.

use virtbench_model::operations::{CloneAnalysis, OperationsAnalysis, StepAnalysis, TenantsAnalysis};
use virtbench_record::{CloneKind, JobFigure, OperationKind, OperationsPlan, Phase};

use super::Takeaway;
use crate::figures::kind_name;
use crate::format::{MILLISECOND_NS, count, ratio, ratio_span, rounded, significant, trimmed};

/// Less than this share of what was intended is worth a caution.
const WANTED_SHARE: f64 = 0.95;
/// A latency that grows by less is said to stay, as a factor.
const STAYS: f64 = 1.2;

/// The slowest operation and the rate; then where the time goes, growth, failures.
pub(crate) fn of_operations(plan: &OperationsPlan, analysis: &OperationsAnalysis) -> Takeaway {
    let mut details = Vec::new();
    if let Some(rate) = analysis.sustained_per_minute {
        details.push(format!(
            "The highest rate that is sustained is {} operations a minute.",
            significant(rate)
        ));
    }
    for step in &analysis.steps {
        details.extend(rate(step));
    }
    details.extend(analysis.steps.first().and_then(seen));
    details.extend(analysis.tenants.iter().filter_map(tenants));
    details.extend(analysis.steps.iter().filter_map(clones));
    details.extend(analysis.steps.iter().filter_map(downtime));
    details.extend(growth(analysis));
    let mut cautions = Vec::new();
    if !plan.left_out.is_empty() {
        let left: Vec<String> = plan.left_out.iter().map(|kind| kind_name(*kind)).collect();
        cautions
            .push(format!("The platform does not have {}: the mix was kept without it.", left.join(", ")));
    }
    cautions.extend(analysis.untold_below_per_minute.map(|rate| {
        format!(
            "No rate was found that is sustained. A piece at less than {} operations a minute holds too few to tell; longer pieces hold more.",
            significant(rate)
        )
    }));
    cautions.extend(analysis.incomplete.iter().map(|what| format!("No result: {what}.")));
    cautions.extend(analysis.steps.iter().filter_map(doubts));
    Takeaway { headline: headline(analysis), details, cautions }
}

fn headline(analysis: &OperationsAnalysis) -> String {
    let Some(step) = analysis.steps.iter().find(|step| step.done() > 0) else {
        return "No operation has been measured yet.".into();
    };
    let mut medians: Vec<(f64, OperationKind)> =
        step.kinds.iter().filter_map(|(kind, one)| Some((one.median_ns()?, *kind))).collect();
    medians.sort_by(|one, other| other.0.total_cmp(&one.0));
    let said = |(ns, kind): &(f64, OperationKind)| {
        format!("{} ms ({})", significant(ns / MILLISECOND_NS), kind_name(*kind))
    };
    let (Some(slowest), Some(fastest)) = (medians.first(), medians.last()) else {
        return "No operation has been done yet.".into();
    };
    let at = step.per_minute.map_or_else(
        || "in a closed loop".to_owned(),
        |rate| format!("at {} operations a minute", significant(rate)),
    );
    let vms = count(step.vms as usize, "VM");
    if medians.len() == 1 {
        return format!("With {vms} {at}, the median is {}.", said(slowest));
    }
    format!("With {vms} {at}, medians are from {} to {}.", said(fastest), said(slowest))
}

fn rate(step: &StepAnalysis) -> Option<String> {
    let achieved = step.achieved?.mean;
    let vms = count(step.vms as usize, "VM");
    Some(match step.per_minute {
        Some(rate) => format!(
            "With {vms}, {} of {} operations a minute were done{}{}; {} of {} failed.",
            significant(achieved),
            significant(rate),
            by_chance(step, rate),
            if step.kept_up == Some(true) { ": the platform kept up" } else { "" },
            step.failed().values().sum::<u64>(),
            step.intended
        ),
        None => {
            format!("With {vms}, clients did {} operations a minute in a closed loop.", significant(achieved))
        }
    })
}

/// What operations leave of the tenants' work.
fn tenants(one: &TenantsAnalysis) -> Option<String> {
    let iops = one.iops?;
    let during = one.per_minute.map_or_else(
        || "clients operate in a closed loop".to_owned(),
        |rate| format!("{} operations a minute arrive", significant(rate)),
    );
    let span = iops.interval.map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    let p99 = one.p99.map_or_else(String::new, |p99| {
        format!("; the 99th percentile of their latency is {} times as long", significant(p99.value))
    });
    Some(format!(
        "While {during} at {}, tenants do {}{span} of what they do without{p99}.",
        count(one.vms as usize, "VM"),
        ratio(iops.value)
    ))
}

/// Ways to make clones' disks, beside the first.
fn clones(step: &StepAnalysis) -> Option<String> {
    let first = step.clones.first()?;
    let others: Vec<String> = step.clones.iter().filter_map(|one| said_of(one, first.way)).collect();
    (!others.is_empty()).then(|| format!("With {}, {}.", count(step.vms as usize, "VM"), others.join("; ")))
}

fn said_of(one: &CloneAnalysis, first: CloneKind) -> Option<String> {
    let found = one.ratio?;
    let span = found.interval.map_or_else(String::new, |span| format!(" ({})", ratio_span(span)));
    let (way, first) = (one.way.name(), first.name());
    Some(format!(
        "a clone of the kind {way} takes {}{span} of the time of one of the kind {first}",
        ratio(found.value)
    ))
}

/// How long guests are paused while they migrate.
fn downtime(step: &StepAnalysis) -> Option<String> {
    let job = &step.kinds.get(&OperationKind::Migrate)?.job;
    let (elapsed, downtime) = (job.get(&JobFigure::ElapsedNs)?, job.get(&JobFigure::DowntimeNs)?);
    Some(format!(
        "With {}, a migration takes {} ms by the platform's own statistics, of which its guest stands still for {} ms.",
        count(step.vms as usize, "VM"),
        significant(elapsed / MILLISECOND_NS),
        significant(downtime / MILLISECOND_NS)
    ))
}

/// The operation whose time goes most into being seen.
fn seen(step: &StepAnalysis) -> Option<String> {
    let share = |phases: &std::collections::BTreeMap<Phase, f64>, all: f64| {
        Some(phases.get(&Phase::Seen)? / all).filter(|share| *share > 0.0)
    };
    let shares =
        step.kinds.iter().filter_map(|(kind, one)| Some((*kind, share(&one.phases_ns, one.mean_ns())?)));
    let (kind, most) = shares.max_by(|one, other| one.1.total_cmp(&other.1))?;
    (most > 0.5).then(|| {
        format!(
            "{} % of {}'s time passes after the platform has said that it is done, until its effect is seen.",
            rounded(100.0 * most, 0),
            kind_name(kind)
        )
    })
}

fn growth(analysis: &OperationsAnalysis) -> Vec<String> {
    let vms: Vec<u32> = analysis.steps.iter().map(|step| step.vms).collect();
    let (Some(fewest), Some(most)) = (vms.iter().min(), vms.iter().max()) else { return Vec::new() };
    growth_sentences(&analysis.growth, f64::from(*fewest), f64::from(*most))
}

/// What a table of latencies over numbers of VMs comes to.
#[must_use]
pub fn growth_takeaway(
    growth: &std::collections::BTreeMap<OperationKind, virtbench_model::operations::Growth>,
    fewest: f64,
    most: f64,
) -> Takeaway {
    let mut sentences = growth_sentences(growth, fewest, most).into_iter();
    let headline = sentences.next().unwrap_or_else(|| "No operation has two numbers of VMs.".into());
    Takeaway { headline, details: sentences.collect(), cautions: Vec::new() }
}

/// Which operations take longer with more VMs, and which do not.
fn growth_sentences(
    growth: &std::collections::BTreeMap<OperationKind, virtbench_model::operations::Growth>,
    fewest: f64,
    most: f64,
) -> Vec<String> {
    let mut grows: Vec<(f64, String)> = Vec::new();
    let mut stays = Vec::new();
    for (kind, found) in growth {
        if found.factor < STAYS {
            stays.push(format!("{} ({})", kind_name(*kind), significant(found.factor)));
            continue;
        }
        let bend = found.bend.map_or_else(String::new, |vms| format!(", bending at {}", trimmed(vms, 0)));
        let said = format!(
            "{} {}-fold (exponent {}{bend})",
            kind_name(*kind),
            significant(found.factor),
            significant(found.exponent)
        );
        grows.push((found.factor, said));
    }
    grows.sort_by(|one, other| other.0.total_cmp(&one.0));
    let span = format!("From {} to {} VMs", trimmed(fewest, 0), trimmed(most, 0));
    let mut sentences = Vec::new();
    if !grows.is_empty() {
        let all: Vec<String> = grows.into_iter().map(|(_, said)| said).collect();
        sentences.push(format!("{span} these take longer: {}.", all.join(", ")));
    }
    if !stays.is_empty() {
        sentences.push(format!("{span} these do not take longer: {}.", stays.join(", ")));
    }
    sentences
}

/// How many arrived, where that is another rate than was asked for: arrivals are random.
fn by_chance(step: &StepAnalysis, asked: f64) -> String {
    let arrived = step.arrived_per_minute;
    let is_other = (arrived - asked).abs() > (1.0 - WANTED_SHARE) * asked;
    if is_other { format!(" ({} arrived by chance)", significant(arrived)) } else { String::new() }
}

fn doubts(step: &StepAnalysis) -> Option<String> {
    let intended = step.per_minute?;
    let achieved = step.achieved?.mean;
    let vms = count(step.vms as usize, "VM");
    if step.not_issued as f64 > (1.0 - WANTED_SHARE) * step.intended as f64 {
        return Some(format!(
            "With {vms} at {} a minute, {} of {} operations had no VM in a state for them: more VMs would take them.",
            significant(intended),
            step.not_issued,
            step.intended
        ));
    }
    if step.is_short {
        return Some(format!(
            "With {vms} at {} a minute, operations take longer than half of a piece: its throughput is no steady state. Measure longer pieces.",
            significant(intended)
        ));
    }
    let failed = step.failed().values().sum::<u64>();
    if failed as f64 > (1.0 - WANTED_SHARE) * step.intended as f64 {
        return Some(format!(
            "With {vms} at {} a minute, {failed} of {} operations failed: their time is in no latency.",
            significant(intended),
            step.intended
        ));
    }
    let fell_short = achieved < WANTED_SHARE * intended.min(step.arrived_per_minute);
    step.kept_up.map_or(fell_short, |kept_up| !kept_up).then(|| {
        format!(
            "With {vms} the platform did not keep up with {} a minute: its latencies grow for as long as that lasts.",
            significant(intended)
        )
    })
}

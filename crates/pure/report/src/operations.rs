//! A study of management operations: its page, and the sentences a reader takes away.

use maud::{Markup, html};
use virtbench_model::operations::{
    CloneAnalysis, KindAnalysis, OperationsAnalysis, StepAnalysis, TenantsAnalysis, analyse_operations,
};
use virtbench_record::{
    CloneKind, JobFigure, OperationKind, OperationsPlan, OperationsRecord, Phase, Provenance,
};

use super::page::document;
use super::takeaway::Takeaway;
use crate::figures::{kind_name, operations, step_name};
use crate::format::{MILLISECOND_NS, count, ratio, ratio_span, rounded, significant, trimmed};
use crate::page::{Head, Section};

const MIB: f64 = 1_048_576.0;

/// What it says, and its figures.
pub(crate) fn head(
    provenance: &Provenance,
    plan: &OperationsPlan,
    records: &[OperationsRecord],
    analysis: &OperationsAnalysis,
) -> Head<1> {
    let figures = operations(analysis, records);
    Head {
        title: "How fast the control plane is".into(),
        place: format!("{} · {}", plan.platform, crate::provenance::started(provenance)),
        takeaway: of_operations(plan, analysis),
        sections: [Section::new("operations", "Operations", "Nothing was measured yet.", figures)],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &OperationsPlan, records: &[OperationsRecord]) -> String {
    let analysis = analyse_operations(plan, records);
    let head = head(provenance, plan, records, &analysis);
    let [figures] = &head.sections;
    let content = html! {
        (head.plain_opening())
        (figures.markup())
        section aria-labelledby="rates" {
            h2 id="rates" { "What was asked for, and what was done" }
            (rates(&analysis))
        }
        section aria-labelledby="latencies" {
            h2 id="latencies" { "Latency by operation" }
            (latencies(&analysis))
        }
        (management(&analysis))
        (density(&analysis))
        (clones(&analysis))
        (jobs(&analysis))
        section aria-labelledby="failures" {
            h2 id="failures" { "Failures" }
            (failures(&analysis, records))
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(&head.title, &provenance.version, &content)
}

fn rates(analysis: &OperationsAnalysis) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="What was asked for, and what was done" {
            table {
                thead { tr {
                    th scope="col" { "step" } th.number scope="col" { "pieces" } th.number scope="col" { "score, done/min" }
                    th.number scope="col" { "mean, ms" } th.number scope="col" { "95th percentile, ms" }
                    th.number scope="col" { "intended" } th.number scope="col" { "done" } th.number scope="col" { "failed" }
                    th.number scope="col" { "no VM for it" }
                } }
                tbody {
                    @for step in &analysis.steps {
                        tr {
                            th scope="row" { (step_name(step)) }
                            td.number { (step.pieces) }
                            td.number { (step.achieved.map_or_else(|| "–".into(), |rate| significant(rate.mean))) }
                            @for figure in &step.latency_ns {
                                td.number { (milliseconds(figure.map(|estimate| estimate.mean))) }
                            }
                            td.number { (step.intended) }
                            td.number { (step.done()) }
                            td.number { (step.failed().values().sum::<u64>()) }
                            td.number { (step.not_issued) }
                        }
                    }
                }
            }
        }
    }
}

/// Nanoseconds in milliseconds, or a dash.
fn milliseconds(ns: Option<f64>) -> String {
    ns.map_or_else(|| "–".into(), |ns| significant(ns / MILLISECOND_NS))
}

fn latencies(analysis: &OperationsAnalysis) -> Markup {
    html! {
        div.scroll tabindex="0" role="region" aria-label="Latency by operation" {
            table {
                thead { tr {
                    th scope="col" { "step" } th scope="col" { "operation" } th.number scope="col" { "done" }
                    th.number scope="col" { "done/min" } th.number scope="col" { "mean, ms" }
                    th.number scope="col" { "median, ms" } th.number scope="col" { "95 % interval" }
                    th.number scope="col" { "90th percentile, ms" } th.number scope="col" { "95th percentile, ms" }
                    th.number scope="col" { "99th percentile, ms" } th.number scope="col" { "until seen, %" }
                } }
                tbody {
                    @for step in &analysis.steps {
                        @for (kind, one) in &step.kinds {
                            tr {
                                th scope="row" { (step_name(step)) }
                                td { (kind_name(*kind)) }
                                td.number { (one.done) }
                                td.number { (one.throughput.map_or_else(|| "–".into(), |rate| significant(rate.mean))) }
                                td.number { (milliseconds(one.mean_and_p95_ns[0].map(|estimate| estimate.mean))) }
                                td.number { (milliseconds(one.median_ns())) }
                                td.number {
                                    @if let Some(span) = one.percentiles_ns[0].and_then(|median| median.span()) {
                                        (milliseconds(Some(span.low))) " to " (milliseconds(Some(span.high)))
                                    } @else { "–" }
                                }
                                @for percentile in [&one.percentiles_ns[1], &one.mean_and_p95_ns[1], &one.percentiles_ns[2]] {
                                    td.number { (milliseconds(percentile.map(|estimate| estimate.mean))) }
                                }
                                td.number {
                                    (one.phases_ns.get(&virtbench_record::Phase::Seen).map_or_else(
                                        || "–".into(),
                                        |seen| rounded(100.0 * seen / one.mean_ns().max(1.0), 0)
                                    ))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What the platform's own processes used; nothing in runs of earlier versions.
fn management(analysis: &OperationsAnalysis) -> Markup {
    let is_told =
        |step: &StepAnalysis| !step.management.is_empty() || !step.management_unavailable.is_empty();
    html! {
        @if analysis.steps.iter().any(is_told) {
            section aria-labelledby="management" {
                h2 id="management" { "What the management stack used" }
                p {
                    "Processes of the platform itself on this host: processor time over each piece, that of children they have waited \
                     for included, and resident memory at its end."
                }
                div.scroll tabindex="0" role="region" aria-label="What the management stack used" {
                    table {
                        thead { tr {
                            th scope="col" { "step" } th scope="col" { "process" }
                            th.number scope="col" { "CPU, % of a processor" } th.number scope="col" { "CPU an operation, ms" }
                            th.number scope="col" { "resident, MiB" }
                        } }
                        tbody {
                            @for step in &analysis.steps {
                                @for one in &step.management {
                                    tr {
                                        th scope="row" { (step_name(step)) }
                                        td { (one.name) }
                                        td.number { (significant(one.cpu_percent)) }
                                        td.number { (milliseconds(one.cpu_ns_each)) }
                                        td.number { (significant(one.resident_bytes as f64 / MIB)) }
                                    }
                                }
                                @for why in &step.management_unavailable {
                                    tr {
                                        th scope="row" { (step_name(step)) }
                                        td colspan="4" { "unavailable: " (why) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// How latencies grow with the number of VMs; nothing where there was one number alone.
fn density(analysis: &OperationsAnalysis) -> Markup {
    html! {
        @if !analysis.growth.is_empty() {
            section aria-labelledby="density" {
                h2 id="density" { "Growth with the number of VMs" }
                p {
                    "A power of the number of VMs, fitted to the median of each piece at the lowest rate: an exponent of 1 doubles with \
                     the VMs, 0 stays. It bends where two powers fit so much better that chance would hardly do it."
                }
                div.scroll tabindex="0" role="region" aria-label="Growth with the number of VMs" {
                    table {
                        thead { tr {
                            th scope="col" { "operation" } th.number scope="col" { "most to fewest VMs" }
                            th.number scope="col" { "exponent" } th.number scope="col" { "bends at, VMs" }
                        } }
                        tbody {
                            @for (kind, found) in &analysis.growth {
                                tr {
                                    th scope="row" { (kind_name(*kind)) }
                                    td.number { (ratio(found.factor)) }
                                    td.number { (significant(found.exponent)) }
                                    td.number { (found.bend.map_or_else(|| "–".into(), |vms| rounded(vms, 0))) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Ways to make clones' disks; nothing where there was one alone.
fn clones(analysis: &OperationsAnalysis) -> Markup {
    html! {
        @if analysis.steps.iter().any(|step| !step.clones.is_empty()) {
            section aria-labelledby="clones" {
                h2 id="clones" { "Clones by the way their disks are made" }
                p { "The ways take turns, clone by clone; a ratio is of medians within the same piece, to the first way." }
                div.scroll tabindex="0" role="region" aria-label="Clones by the way their disks are made" {
                    table {
                        thead { tr {
                            th scope="col" { "step" } th scope="col" { "way" } th.number scope="col" { "done" }
                            th.number scope="col" { "failed" } th.number scope="col" { "median, ms" }
                            th.number scope="col" { "90th percentile, ms" } th.number scope="col" { "ratio to the first" }
                            th.number scope="col" { "95 % interval" }
                        } }
                        tbody {
                            @for step in &analysis.steps {
                                @for one in &step.clones {
                                    tr {
                                        th scope="row" { (step_name(step)) }
                                        td { (one.way.name()) }
                                        td.number { (one.kind.done) }
                                        td.number { (one.kind.failed.values().sum::<u64>()) }
                                        td.number { (milliseconds(one.kind.median_ns())) }
                                        td.number { (milliseconds(one.kind.percentiles_ns[1].map(|estimate| estimate.mean))) }
                                        td.number { (one.ratio.map_or_else(|| "–".into(), |found| ratio(found.value))) }
                                        td.number {
                                            (one.ratio.and_then(|found| found.interval).map_or_else(|| "–".into(), ratio_span))
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// What the platform told of its jobs; nothing where no operation was one.
fn jobs(analysis: &OperationsAnalysis) -> Markup {
    let is_job = |one: &KindAnalysis| !one.job.is_empty() || one.job_unavailable.is_some();
    let all = || analysis.steps.iter().flat_map(|step| step.kinds.values());
    let is_told = |figure: &JobFigure| all().any(|one| one.job.contains_key(figure));
    let figures: Vec<JobFigure> = JobFigure::ALL.into_iter().filter(is_told).collect();
    html! {
        @if all().any(is_job) {
            section aria-labelledby="jobs" {
                h2 id="jobs" { "What the platform says of its jobs" }
                p { "By the platform's own statistics, once an operation is done: means. Downtime is how long a guest stands still." }
                div.scroll tabindex="0" role="region" aria-label="What the platform says of its jobs" {
                    table {
                        thead { tr {
                            th scope="col" { "step" } th scope="col" { "operation" }
                            @for figure in &figures { th.number scope="col" { (job_column(*figure)) } }
                            @if figures.is_empty() { th scope="col" { "told" } }
                        } }
                        tbody {
                            @for step in &analysis.steps {
                                @for (kind, one) in step.kinds.iter().filter(|(_, one)| is_job(one)) {
                                    tr {
                                        th scope="row" { (step_name(step)) }
                                        td { (kind_name(*kind)) }
                                        @if one.job.is_empty() {
                                            td colspan=(figures.len().max(1)) {
                                                "unavailable: " (one.job_unavailable.as_deref().unwrap_or("it does not say why"))
                                            }
                                        } @else {
                                            @for figure in &figures {
                                                td.number {
                                                    (one.job.get(figure).map_or_else(|| "–".into(), |value| job_value(*figure, *value)))
                                                }
                                            }
                                        }
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn job_column(figure: JobFigure) -> &'static str {
    match figure {
        JobFigure::ElapsedNs => "in all, ms",
        JobFigure::SetupNs => "setup, ms",
        JobFigure::DowntimeNs => "downtime, ms",
        JobFigure::MovedBytes => "moved, MiB",
        JobFigure::TotalBytes => "to move, MiB",
        JobFigure::Passes => "passes",
        JobFigure::QueuedNs => "in queues, ms",
        JobFigure::ConductorNs => "conductor, ms",
        JobFigure::SchedulerNs => "scheduler, ms",
        JobFigure::ComputeNs => "hosts, ms",
        JobFigure::UncertaintyNs => "end known to, ms",
    }
}

fn job_value(figure: JobFigure, value: f64) -> String {
    significant(match figure {
        JobFigure::ElapsedNs
        | JobFigure::SetupNs
        | JobFigure::DowntimeNs
        | JobFigure::QueuedNs
        | JobFigure::ConductorNs
        | JobFigure::SchedulerNs
        | JobFigure::ComputeNs
        | JobFigure::UncertaintyNs => value / MILLISECOND_NS,
        JobFigure::MovedBytes | JobFigure::TotalBytes => value / MIB,
        JobFigure::Passes => value,
    })
}

fn failures(analysis: &OperationsAnalysis, records: &[OperationsRecord]) -> Markup {
    let words = records.iter().filter_map(OperationsRecord::seen).flat_map(|one| &one.first_failures);
    let words: Vec<&String> = words.take(10).collect();
    let any = analysis.steps.iter().any(|step| !step.failed().is_empty());
    html! {
        @if any || !words.is_empty() {
            div.scroll tabindex="0" role="region" aria-label="Failures" {
                table {
                    thead { tr {
                        th scope="col" { "step" } th scope="col" { "operation" } th scope="col" { "how it failed" }
                        th.number scope="col" { "times" }
                    } }
                    tbody {
                        @for step in &analysis.steps {
                            @for (kind, one) in &step.kinds {
                                @for (failure, times) in &one.failed {
                                    tr {
                                        th scope="row" { (step_name(step)) }
                                        td { (kind_name(*kind)) }
                                        td { (failure.name().replace('_', " ")) }
                                        td.number { (times) }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            p { "In the platform's words:" }
            ul { @for word in words { li { (word) } } }
        } @else { p { "No operation failed." } }
    }
}

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
    details.extend(analysis.steps.iter().filter_map(clones_sentence));
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
fn clones_sentence(step: &StepAnalysis) -> Option<String> {
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

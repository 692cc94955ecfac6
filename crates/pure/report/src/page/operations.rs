//! The page of a study of management operations.

use maud::{Markup, html};
use virtbench_model::operations::{KindAnalysis, OperationsAnalysis, StepAnalysis, analyse_operations};
use virtbench_record::{JobFigure, OperationsPlan, OperationsRecord, Provenance};

use super::document;
use crate::figures::{kind_name, operations, step_name};
use crate::format::{MILLISECOND_NS, ratio, ratio_span, rounded, significant};
use crate::outline::{Head, Section};
use crate::takeaway::of_operations;

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

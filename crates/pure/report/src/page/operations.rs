//! The page of a study of management operations.

use maud::{Markup, html};
use virtbench_model::operations::{OperationsAnalysis, analyse_operations};
use virtbench_record::{OperationsPlan, OperationsRecord, Provenance};

use super::{document, opening, section};
use crate::figures::{kind_name, operations, step_name};
use crate::format::{MILLISECOND_NS, rounded, significant};
use crate::takeaway::of_operations;

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &OperationsPlan, records: &[OperationsRecord]) -> String {
    let analysis = analyse_operations(plan, records);
    let title = "How fast the control plane is";
    let place = format!("{} · {}", plan.platform, crate::provenance::started(provenance));
    let figures = operations(&analysis, records);
    let content = html! {
        (opening(title, &place, &of_operations(plan, &analysis), &html! {}))
        (section("operations", "Operations", "Nothing was measured yet.", &figures))
        section aria-labelledby="rates" {
            h2 id="rates" { "What was asked for, and what was done" }
            (rates(&analysis))
        }
        section aria-labelledby="latencies" {
            h2 id="latencies" { "Latency by operation" }
            (latencies(&analysis))
        }
        section aria-labelledby="failures" {
            h2 id="failures" { "Failures" }
            (failures(&analysis, records))
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(title, &provenance.version, &content, figures.iter())
}

fn rates(analysis: &OperationsAnalysis) -> Markup {
    html! {
        table {
            thead { tr {
                th scope="col" { "step" } th.number scope="col" { "pieces" } th.number scope="col" { "done/min" }
                th.number scope="col" { "intended" } th.number scope="col" { "done" } th.number scope="col" { "failed" }
                th.number scope="col" { "no VM for it" }
            } }
            tbody {
                @for step in &analysis.steps {
                    tr {
                        th scope="row" { (step_name(step)) }
                        td.number { (step.pieces) }
                        td.number { (step.achieved.map_or_else(|| "–".into(), |rate| significant(rate.mean))) }
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

fn latencies(analysis: &OperationsAnalysis) -> Markup {
    let shown = |value: Option<f64>| value.map_or_else(|| "–".into(), |ns| significant(ns / MILLISECOND_NS));
    html! {
        table {
            thead { tr {
                th scope="col" { "step" } th scope="col" { "operation" } th.number scope="col" { "done" }
                th.number scope="col" { "median, ms" } th.number scope="col" { "95 % interval" }
                th.number scope="col" { "90th percentile, ms" } th.number scope="col" { "99th percentile, ms" }
                th.number scope="col" { "until seen, %" }
            } }
            tbody {
                @for step in &analysis.steps {
                    @for (kind, one) in &step.kinds {
                        tr {
                            th scope="row" { (step_name(step)) }
                            td { (kind_name(*kind)) }
                            td.number { (one.done) }
                            td.number { (shown(one.median_ns())) }
                            td.number {
                                @if let Some(span) = one.percentiles_ns[0].and_then(|median| median.span()) {
                                    (shown(Some(span.low))) " to " (shown(Some(span.high)))
                                } @else { "–" }
                            }
                            @for percentile in &one.percentiles_ns[1..] {
                                td.number { (shown(percentile.map(|estimate| estimate.mean))) }
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

fn failures(analysis: &OperationsAnalysis, records: &[OperationsRecord]) -> Markup {
    let any = analysis.steps.iter().any(|step| !step.failed().is_empty());
    let words = records.iter().filter_map(OperationsRecord::measured).flat_map(|one| &one.first_failures);
    let words: Vec<&String> = words.take(10).collect();
    html! {
        @if any {
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
            p { "In the platform's words:" }
            ul { @for word in words { li { (word) } } }
        } @else { p { "No operation failed." } }
    }
}

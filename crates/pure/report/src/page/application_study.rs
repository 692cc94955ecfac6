//! The page of a study of an application.

use maud::{Markup, html};
use virtbench_model::application::{ApplicationStudyAnalysis, MetricFound, analyse_application_study};
use virtbench_record::{ApplicationPlan, ApplicationRecord, Provenance};

use super::cells::{estimate, times};
use super::document;
use crate::figures;
use crate::format::{rounded, scaled};
use crate::outline::{Head, Section};
use crate::path_cost::path_cost;
use crate::takeaway::of_application_study;

/// Lines of a client's output that the page shows.
const LINES: usize = 30;

/// What it says, and its figures.
pub(crate) fn head(
    provenance: &Provenance,
    plan: &ApplicationPlan,
    records: &[ApplicationRecord],
    analysis: &ApplicationStudyAnalysis,
) -> Head<1> {
    let figures = figures::application(plan, analysis, records);
    Head {
        title: format!("{} natively and in VMs", plan.load.appliance),
        place: crate::provenance::place(provenance),
        takeaway: of_application_study(provenance, plan, analysis),
        sections: [Section::new("metrics", "Metrics", "Nothing was measured yet.", figures)],
    }
}

/// One self-contained page.
pub(crate) fn page(provenance: &Provenance, plan: &ApplicationPlan, records: &[ApplicationRecord]) -> String {
    let analysis = analyse_application_study(plan, records);
    let head = head(provenance, plan, records, &analysis);
    let [metrics] = &head.sections;
    let content = html! {
        (head.plain_opening())
        (metrics.markup())
        section aria-labelledby="figures" {
            h2 id="figures" { "Every figure" }
            (figures_table(plan, &analysis))
        }
        section aria-labelledby="paths" {
            h2 id="paths" { "Paths, and processors of the host" }
            (paths(&analysis))
        }
        section aria-labelledby="output" {
            h2 id="output" { "What clients printed" }
            (outputs(plan, records))
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (crate::provenance::section(provenance, &provenance.notes, &|_| None))
        }
    };
    document(&head.title, &provenance.version, &content)
}

fn figures_table(plan: &ApplicationPlan, analysis: &ApplicationStudyAnalysis) -> Markup {
    let beside = plan.neighbours > 0;
    html! {
        div.scroll tabindex="0" role="region" aria-label="Every figure" {
            table {
                thead { tr {
                    th scope="col" { "metric" } th scope="col" { "side" }
                    th.number scope="col" { "alone" } th.number scope="col" { "VM / native" }
                    @if beside {
                        th.number scope="col" { "beside " (plan.neighbours) }
                        th.number scope="col" { "beside / alone" } th.number scope="col" { "deviation, %" }
                    }
                } }
                tbody {
                    @for (index, metric) in plan.metrics.iter().enumerate() {
                        @for side in &analysis.sides {
                            tr {
                                th scope="row" { (metric.name) ", " (scaled(&metric.unit).1) }
                                td { (side.side.name) }
                                (cells(&side.metrics[index], &metric.unit, beside))
                            }
                        }
                    }
                }
            }
        }
    }
}

fn cells(found: &MetricFound, unit: &str, beside: bool) -> Markup {
    let factor = scaled(unit).0;
    let deviation = found.deviation.map(|deviation| deviation.estimate);
    html! {
        (estimate(found.alone, factor))
        (times(found.against_native))
        @if beside {
            (estimate(found.beside, factor))
            (times(found.against_alone))
            (estimate(deviation, 1.0))
        }
    }
}

fn paths(analysis: &ApplicationStudyAnalysis) -> Markup {
    html! {
        dl.facts {
            @for side in &analysis.sides {
                (crate::provenance::fact(
                    &format!("Path to {}", side.side.name),
                    &side.path.as_ref().map_or_else(|| "not measured".to_owned(), path_cost)
                ))
                @for (name, cost) in &side.tier_paths {
                    (crate::provenance::fact(
                        &format!("Path from {} to its tier {name}", side.side.name),
                        &path_cost(cost)
                    ))
                }
                @if let Some(used) = side.host_cpu_percent {
                    (crate::provenance::fact(
                        &format!("Host's processors, {} alone", side.side.name),
                        &format!("{} % of one", rounded(used.mean, 0))
                    ))
                }
            }
        }
    }
}

/// The last output of each side, and that of what failed.
fn outputs(plan: &ApplicationPlan, records: &[ApplicationRecord]) -> Markup {
    let last = |name: &str| {
        records.iter().rev().filter(|record| record.key.side == name).find_map(ApplicationRecord::measured)
    };
    let failed = records.iter().filter_map(|record| {
        Some((record, record.failure()?, record.detail().and_then(|detail| detail.output.as_deref())))
    });
    html! {
        @for side in &plan.sides {
            @if let Some(measured) = last(&side.name) {
                h3 { (side.name) }
                pre tabindex="0" { code { (end(&measured.output)) } }
            }
        }
        @for (record, why, output) in failed {
            h3 { (record.key.side) ", repetition " (record.key.repetition + 1) ", failed" }
            p { (why) }
            @if let Some(output) = output { pre tabindex="0" { code { (end(output)) } } }
        }
    }
}

fn end(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}

//! What to use for which kind of I/O.

use maud::{Markup, html};
use virtbench_model::Analysis;
use virtbench_model::pairwise::{Advice, Group, Standing};

use crate::format::{MEGABYTE, ratio, ratio_span, significant};
use crate::takeaway::group_name;

/// A row for each kind, with all configurations ranked.
pub(crate) fn kinds(analysis: &Analysis) -> Markup {
    html! {
        p.hint {
            "Points of one kind and size taken together, as geometric means. To be used is the fastest, or what is \
             equivalent to it within the margin; of these, none that does less I/O for each percent of host CPU \
             by more than the margin. Where repetitions do not tell the fastest from another, nothing is advised. \
             Figures are those of the first; intervals allow for the choice of the fastest."
        }
        div.scroll tabindex="0" role="region" aria-label="What to use for which kind of I/O" {
            table {
                thead { tr {
                    th scope="col" { "kind of I/O" } th scope="col" { "use" } th scope="col" { "throughput " span.unit { "MB/s" } }
                    th scope="col" { "I/O per %CPU" } th scope="col" { "the others, against the fastest" }
                } }
                tbody { @for group in &analysis.groups { (row(analysis, group)) } }
            }
        }
    }
}

fn row(analysis: &Analysis, group: &Group) -> Markup {
    let sizes = analysis.groups.iter().filter(|other| other.kind == group.kind).count() > 1;
    let advice = analysis.advice(group);
    let names = |standings: &[&Standing]| {
        let names: Vec<&str> =
            standings.iter().map(|standing| analysis.name(standing.configuration)).collect();
        names.join(" or ")
    };
    let choice = match &advice {
        Advice::Use(choices) => choices.first().copied(),
        Advice::NotTold { best, .. } => Some(*best),
        Advice::NotMeasured => None,
    };
    let number = |value: Option<f64>| value.map_or_else(|| "–".into(), significant);
    html! {
        tr {
            td { (group_name(group, sizes)) }
            td {
                @match &advice {
                    Advice::Use(choices) => strong { (names(choices)) },
                    Advice::NotTold { best, others } => {
                        "not told: " (names(&[&[*best][..], others].concat()))
                    }
                    Advice::NotMeasured => "–",
                }
            }
            td.number { (number(choice.map(|standing| standing.bytes_per_second / MEGABYTE))) }
            td.number { (number(choice.and_then(|standing| standing.iops_per_cpu_percent))) }
            td { @for standing in &group.standings { (against(analysis, standing)) } }
        }
    }
}

fn against(analysis: &Analysis, standing: &Standing) -> Markup {
    let name = analysis.name(standing.configuration);
    let Some(judged) = standing.against_best else {
        return html! { div { (name) ": fastest" } };
    };
    let interval = judged.ratio.interval.map_or_else(|| "no spread given".into(), ratio_span);
    html! {
        div class=(judged.finding.name()) {
            (name) ": " (ratio(judged.ratio.value)) " (" (interval) "), " (judged.finding.name())
        }
    }
}

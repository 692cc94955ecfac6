//! The page of a native-against-VM run, from the sentence a reader takes away down to the provenance.

use std::collections::BTreeMap;

use maud::{Markup, html};
use virtbench_model::Ratio;

use super::{document, unbroken};
use crate::figures;
use crate::format::{ratio, ratio_span};
use crate::page::{Head, Section};
use crate::run::{Run, RunGuest};
use crate::{provenance, tables, takeaway};

/// What it says, and its figures.
pub(crate) fn head(run: &Run<'_>, histograms: &BTreeMap<String, String>) -> Head<4> {
    const UNPAIRED: &str = "No point was measured on both sides.";
    let latency = figures::latency(run, histograms);
    Head {
        title: title(run),
        place: provenance::place(run.provenance),
        takeaway: takeaway::of_run(run),
        sections: [
            Section::new("throughput", "Throughput", "Nothing was measured.", figures::surfaces(run)),
            Section::new("ratio", "Native against VM", UNPAIRED, figures::ratio_curve(run)).leading(),
            Section::new("latencies", "Latency", "No latency histograms were stored.", latency),
            Section::new("cost", "CPU cost", "Nothing was measured.", figures::cpu(run)),
        ],
    }
}

/// The report's HTML.
pub(crate) fn page(run: &Run<'_>, histograms: &BTreeMap<String, String>) -> String {
    let head = head(run, histograms);
    let content = html! {
        (head.opening(&key_figures(run)))
        @for section in &head.sections { (section.markup()) }
        section aria-labelledby="points" {
            h2 id="points" { "Every point" }
            (tables::comparison(run))
            (tables::repetitions(run.records))
        }
        section aria-labelledby="provenance" {
            h2 id="provenance" { "Provenance" }
            (provenance::of_points(run.provenance, run.records))
        }
    };
    document(&head.title, &run.provenance.version, &content)
}

fn title(run: &Run<'_>) -> String {
    let adapter =
        run.provenance.guest.as_ref().map_or_else(String::new, |guest| format!(" on {}", guest.adapter));
    match run.only_guest() {
        Some(_) => format!("Storage natively and in a VM{adapter}"),
        None => format!("Storage natively and in VMs{adapter} under {}", run.guests_in_words()),
    }
}

/// The handful of numbers to remember.
fn key_figures(run: &Run<'_>) -> Markup {
    let of_guest = |guest: &RunGuest| match run.only_guest() {
        Some(_) => figures_of_one(guest),
        None => figures_of_several(guest),
    };
    let figures: Vec<KeyFigure> = run.guests.iter().flat_map(of_guest).collect();
    if figures.is_empty() {
        return html! {};
    }
    html! {
        dl.key {
            @for (name, value, below) in &figures {
                div { dt { (name) } dd { span { (value) } @if let Some(below) = below { small { (unbroken(below)) } } } }
            }
        }
    }
}

/// Its name, its value, and what stands below it.
type KeyFigure = (String, String, Option<String>);

fn figures_of_one(RunGuest { comparison, .. }: &RunGuest) -> Vec<KeyFigure> {
    let Some(summary) = &comparison.summary else { return Vec::new() };
    let mut figures = vec![
        ("mean ratio".into(), ratio(summary.mean.value), over_points(summary.mean)),
        ("lowest".into(), ratio(summary.min.ratio.value), Some(summary.min.key.to_string())),
        ("highest".into(), ratio(summary.max.ratio.value), Some(summary.max.key.to_string())),
    ];
    if let Some(cost) = comparison.cpu_per_io {
        figures.push(("host CPU per I/O".into(), format!("× {}", ratio(cost.value)), over_points(cost)));
    }
    figures
}

fn figures_of_several(RunGuest { side, comparison }: &RunGuest) -> Vec<KeyFigure> {
    let Some(summary) = &comparison.summary else { return Vec::new() };
    let mut figures =
        vec![(format!("mean ratio, {}", side.name), ratio(summary.mean.value), over_points(summary.mean))];
    if let Some(cost) = comparison.cpu_per_io {
        let name = format!("host CPU per I/O, {}", side.name);
        figures.push((name, format!("× {}", ratio(cost.value)), over_points(cost)));
    }
    figures
}

/// The interval of a mean over points, or why there is none.
fn over_points(mean: Ratio) -> Option<String> {
    Some(mean.interval.map_or_else(|| "too few points for an interval".into(), ratio_span))
}

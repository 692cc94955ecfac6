//! The page of a native-against-VM run, from the sentence a reader takes away down to the provenance.

use std::collections::BTreeMap;

use maud::{Markup, html};
use virtbench_model::Ratio;

use super::{document, opening, section, unbroken};
use crate::figures::{self, Figure};
use crate::format::{ratio, ratio_span};
use crate::run::{Run, RunGuest};
use crate::{provenance, tables, takeaway};

/// The report's HTML.
pub(crate) fn page(run: &Run<'_>, histograms: &BTreeMap<String, String>) -> String {
    let figures = PageFigures {
        surfaces: figures::surfaces(run),
        ratio: figures::ratio_curve(run),
        latency: figures::latency(run, histograms),
        cpu: figures::cpu(run),
    };
    let title = title(run);
    let place = format!("{} · {}", run.provenance.host.cpu, provenance::started(run.provenance));
    let content = html! {
        (opening(&title, &place, &takeaway::of_run(run), &key_figures(run)))
        (figures.markup())
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
    document(&title, &run.provenance.version, &content)
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

/// All figures, in the order of the page.
struct PageFigures {
    surfaces: Vec<Figure>,
    ratio: Option<Figure>,
    latency: Option<Figure>,
    cpu: Option<Figure>,
}

impl PageFigures {
    fn markup(&self) -> Markup {
        html! {
            (section("throughput", "Throughput", "Nothing was measured.", &self.surfaces))
            (section("ratio", "Native against VM", "No point was measured on both sides.", self.ratio.as_slice()))
            (section("latencies", "Latency", "No latency histograms were stored.", self.latency.as_slice()))
            (section("cost", "CPU cost", "Nothing was measured.", self.cpu.as_slice()))
        }
    }
}

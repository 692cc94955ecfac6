//! The page of a native-against-VM run, from the sentence a reader takes away down to the provenance.

use std::collections::BTreeMap;

use maud::{Markup, html};
use virtbench_model::Ratio;

use super::{document, opening, section, unbroken};
use crate::figures::{self, Figure};
use crate::format::{ratio, ratio_span};
use crate::run::Run;
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
    format!("Storage natively and in a VM{adapter}")
}

/// The handful of numbers to remember.
fn key_figures(run: &Run<'_>) -> Markup {
    let Some(summary) = &run.comparison.summary else { return html! {} };
    let mut figures = vec![
        ("mean ratio", ratio(summary.mean.value), over_points(summary.mean)),
        ("lowest", ratio(summary.min.ratio.value), Some(summary.min.key.to_string())),
        ("highest", ratio(summary.max.ratio.value), Some(summary.max.key.to_string())),
    ];
    if let Some(cost) = run.comparison.cpu_per_io {
        figures.push(("host CPU per I/O", format!("× {}", ratio(cost.value)), over_points(cost)));
    }
    html! {
        dl.key {
            @for (name, value, below) in &figures {
                div { dt { (name) } dd { span { (value) } @if let Some(below) = below { small { (unbroken(below)) } } } }
            }
        }
    }
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

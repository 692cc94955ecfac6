//! The figures, as data for plotly.js.
//!
//! A [`Figure`] is a caption with one plot or two side by side; a [`Drawing`] is one rectangle of the
//! page. What can be shown there (3-D or flat, this point or that metric) are its variants, of which
//! the page's script draws one at a time.

mod application;
mod before_after;
mod breakdown;
mod configurations;
mod cpu;
mod desktops;
mod deviation;
mod fence;
mod growth;
mod history;
mod latency;
mod operations;
mod profile;
mod ratio;
mod shares;
mod style;
mod surface;
mod tiles;
mod tiles_study;
mod timeline;
mod users;

pub(crate) use application::application;
pub(crate) use before_after::before_after;
pub(crate) use breakdown::breakdown;
pub(crate) use configurations::over_block_sizes;
pub(crate) use cpu::cpu;
pub(crate) use desktops::{desktops, desktops_timeline};
pub(crate) use deviation::{deviations, matrix, vm_name};
pub(crate) use fence::fence_drawing;
pub(crate) use growth::growth;
pub(crate) use history::history;
pub(crate) use latency::latency;
pub(crate) use operations::{kind_name, operations, step_name};
pub(crate) use ratio::ratio_curve;
pub(crate) use shares::shares;
pub(crate) use style::{NATIVE_COLOUR, VM_COLOUR};
pub(crate) use surface::surfaces;
pub(crate) use tiles::tiles;
pub(crate) use tiles_study::{tiles_host, tiles_members};
pub(crate) use timeline::timeline;
pub(crate) use users::users;

use plotly::{Layout, Traces};
use serde_json::{Value, json};

/// How the variant to be drawn is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// There is only one.
    Only,
    /// The first is 3-D, the second flat.
    Depth,
    /// The reader selects one by name; this is what is selected, such as a point.
    Select(&'static str),
}

impl Choice {
    fn name(self) -> &'static str {
        match self {
            Self::Only => "only",
            Self::Depth => "depth",
            Self::Select(_) => "select",
        }
    }
}

/// One thing that can be drawn.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    /// Its name in the selection.
    pub(crate) name: String,
    data: Value,
    layout: Value,
}

impl Variant {
    fn new(name: impl Into<String>, traces: &Traces, layout: &Layout) -> Self {
        // Both are plain data: turning them into a value fails only if one of their own serializers
        // did, and the page then counts a figure that is not drawn.
        Self {
            name: name.into(),
            data: serde_json::to_value(traces).unwrap_or_default(),
            layout: serde_json::to_value(layout).unwrap_or_default(),
        }
    }
}

/// One rectangle of the page in which something is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Drawing {
    /// Unique in the page.
    pub(crate) id: String,
    /// What is to be seen, for a reader who does not see it.
    pub(crate) label: String,
    /// How its variant is chosen.
    pub(crate) choice: Choice,
    /// What can be drawn, at least one.
    pub(crate) variants: Vec<Variant>,
    /// Which variant is shown first where the reader selects.
    pub(crate) first: usize,
}

impl Drawing {
    fn only(id: &str, label: String, variant: Variant) -> Self {
        Self { id: id.into(), label, choice: Choice::Only, variants: vec![variant], first: 0 }
    }

    /// The form in which the page's script reads it.
    pub(crate) fn json(&self) -> Value {
        let variants: Vec<Value> = self
            .variants
            .iter()
            .map(|variant| json!({ "data": variant.data, "layout": variant.layout }))
            .collect();
        json!({ "id": self.id, "choice": self.choice.name(), "variants": variants })
    }
}

/// Whose line is drawn how.
#[derive(Debug, Clone)]
pub(crate) struct KeyEntry {
    pub(crate) name: String,
    colour: &'static str,
    /// As CSS calls it.
    line: &'static str,
}

impl KeyEntry {
    /// A sample of the line.
    pub(crate) fn style(&self) -> String {
        format!("border-top:3px {} {}", self.line, self.colour)
    }
}

/// One figure of the page.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// A short title.
    pub(crate) title: String,
    /// What is to be seen, with units.
    pub(crate) caption: String,
    /// Whose line is drawn how, where drawings share a key; else empty.
    pub(crate) key: Vec<KeyEntry>,
    /// One rectangle, or those that belong side by side.
    pub(crate) drawings: Vec<Drawing>,
}

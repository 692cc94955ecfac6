//! The figures, as descriptions of charts.
//!
//! A [`Figure`] is a caption with one place or several side by side; a [`Drawing`] is one place. What can be looked at there (this
//! point or that metric) are its variants: the page shows one large and the others folded away, and a script lets a reader choose.

mod configurations;
pub(crate) mod history;
mod latency;
mod operations;
pub(crate) mod ratios;
pub(crate) mod shares;
pub(crate) mod style;
mod surface;
mod values;

use virtbench_chart::{Chart, HeatMap, KeyEntry, Name};

pub(crate) use configurations::over_block_sizes;
pub(crate) use history::history;
pub(crate) use latency::latency;
pub(crate) use operations::{kind_name, operations, step_name};
pub(crate) use ratios::{cpu, ratio_curve};
pub(crate) use shares::{deviations, matrix, shares, vm_name};
pub(crate) use style::{breakdown, growth};
pub(crate) use surface::surfaces;

/// One thing that can be drawn.
#[derive(Debug, Clone)]
pub(crate) enum Picture {
    /// Values over axes.
    Chart(Chart),
    /// A number for each row and column.
    Heat(HeatMap),
}

/// One of the things that can be looked at in one place.
#[derive(Debug, Clone)]
pub(crate) struct Variant {
    /// What tells it from the others.
    pub(crate) name: String,
    pub(crate) picture: Picture,
}

impl Variant {
    pub(crate) fn chart(name: impl Into<String>, chart: Chart) -> Self {
        Self { name: name.into(), picture: Picture::Chart(chart) }
    }
}

/// One place of the page in which something is drawn.
#[derive(Debug, Clone)]
pub(crate) struct Drawing {
    /// Unique in the page.
    pub(crate) id: String,
    /// What is to be seen, for a reader who does not see it.
    pub(crate) label: String,
    /// What tells variants from each other, such as a point.
    pub(crate) choice: &'static str,
    /// At least one.
    pub(crate) variants: Vec<Variant>,
    /// The one that is shown large.
    pub(crate) first: usize,
}

impl Drawing {
    pub(crate) fn only(id: &str, label: String, variant: Variant) -> Self {
        Self { id: id.into(), label, choice: "", variants: vec![variant], first: 0 }
    }

    /// Which series is drawn how, all variants together, in the order of the fullest one.
    pub(crate) fn key(&self) -> Vec<KeyEntry> {
        let charts = self.variants.iter().filter_map(|variant| match &variant.picture {
            Picture::Chart(chart) => Some(chart.key()),
            Picture::Heat(_) => None,
        });
        let mut keys: Vec<Vec<KeyEntry>> = charts.collect();
        keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        union(keys)
    }

    /// What stands above a variant: its name, unless an axis has it.
    pub(crate) fn heading(&self, index: usize) -> &str {
        let Variant { name, picture } = &self.variants[index];
        match picture {
            Picture::Chart(chart) if [&chart.x.title, &chart.y.title].contains(&name) => "",
            _ => name,
        }
    }

    /// A variant as an `svg` element of a figure of this title.
    pub(crate) fn svg(&self, index: usize, title: &str) -> String {
        let variant = &self.variants[index];
        let title =
            if variant.name.is_empty() { title.to_owned() } else { format!("{title}: {}", variant.name) };
        let name = Name { id: &format!("{}-{index}", self.id), title: &title, description: &self.label };
        match &variant.picture {
            Picture::Chart(chart) => chart.svg(&name),
            Picture::Heat(map) => map.svg(&name),
        }
    }
}

/// Where the values of a figure can be read.
#[derive(Debug, Clone)]
pub(crate) enum Values {
    /// In a table below it, folded away.
    Own,
    /// Likewise, in this table.
    Given(Table),
    /// In the table of the page that stands under this title.
    Under(&'static str),
}

/// One figure of the page.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    /// A short title.
    pub(crate) title: String,
    /// What is to be seen, with units.
    pub(crate) caption: String,
    /// One place, or those that belong side by side.
    pub(crate) drawings: Vec<Drawing>,
    pub(crate) values: Values,
}

impl Figure {
    /// Which series is drawn how where one key serves all drawings, as where the fullest holds those of the others.
    pub(crate) fn shared_key(&self) -> Option<Vec<KeyEntry>> {
        let mut keys: Vec<Vec<KeyEntry>> = self.drawings.iter().map(Drawing::key).collect();
        keys.sort_by_key(|key| std::cmp::Reverse(key.len()));
        let longest = keys.first()?;
        let is_shared = longest.len() < 2 || keys.iter().flatten().all(|entry| longest.contains(entry));
        is_shared.then(|| union(keys))
    }
}

fn union(keys: Vec<Vec<KeyEntry>>) -> Vec<KeyEntry> {
    let mut all: Vec<KeyEntry> = Vec::new();
    for entry in keys.into_iter().flatten() {
        if !all.contains(&entry) {
            all.push(entry);
        }
    }
    all
}

/// Texts in rows and columns.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    /// A title for each column.
    pub(crate) header: Vec<String>,
    /// The first columns are names, the others numbers.
    pub(crate) rows: Vec<Vec<String>>,
    /// How many of the columns are names.
    pub(crate) names: usize,
    /// What a reader must know of it.
    pub(crate) note: String,
}

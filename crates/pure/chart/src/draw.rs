//! A chart as markup.

use crate::chart::Chart;
use crate::layout::Plot;
use crate::name::Name;
use crate::xml::Svg;
use crate::{axes, marks, rules};

impl Chart {
    /// The chart as an `svg` element.
    #[must_use]
    pub fn svg(&self, name: &Name<'_>) -> String {
        let plot = Plot::new(self);
        let mut svg = Svg::default();
        name.open(&mut svg, plot.height, plot.padding, None);
        rules::bands(&mut svg, self, &plot);
        axes::grid(&mut svg, self, &plot);
        rules::rules(&mut svg, self, &plot);
        marks::series(&mut svg, self, &plot);
        axes::ticks(&mut svg, self, &plot);
        svg.close("svg");
        svg.into_string()
    }
}

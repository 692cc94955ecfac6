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
        self.inside(&mut svg, &plot);
        svg.close("svg");
        svg.into_string()
    }

    /// Everything within the plot and beside it.
    pub(crate) fn inside(&self, svg: &mut Svg, plot: &Plot) {
        rules::bands(svg, self, plot);
        axes::grid(svg, self, plot);
        rules::rules(svg, self, plot);
        marks::series(svg, self, plot);
        axes::ticks(svg, self, plot);
    }
}

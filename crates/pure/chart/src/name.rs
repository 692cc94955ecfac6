//! What a chart is called where it cannot be seen.

use crate::xml::{Escaped, Svg};

/// What a screen reader says of a chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Name<'a> {
    /// Unique in the page: letters, digits and dashes.
    pub id: &'a str,
    /// A few words.
    pub title: &'a str,
    /// What is to be seen, and where its values stand.
    pub description: &'a str,
}

impl Name<'_> {
    /// Opens the outer `svg`; its plot is what its padding (top, right, bottom, left, in pixels) leaves. `most_px` is the width
    /// beyond which it does not grow.
    pub(crate) fn open(&self, svg: &mut Svg, plot_height: f64, padding: [f64; 4], most_px: Option<f64>) {
        let [top, right, bottom, left] = padding.map(f64::round);
        let (id, height) = (Escaped(self.id), (plot_height + top + bottom).round());
        let most = most_px.map_or_else(String::new, |most| format!(";max-width:{}px", most.round()));
        svg.open(
            "svg",
            format_args!(
                "class=\"chart\" role=\"img\" aria-labelledby=\"{id}-title {id}-desc\" \
                 style=\"height:{height}px;padding:{top}px {right}px {bottom}px {left}px{most}\""
            ),
        );
        svg.leaf("title", format_args!("id=\"{id}-title\""), self.title);
        svg.leaf("desc", format_args!("id=\"{id}-desc\""), self.description);
    }
}

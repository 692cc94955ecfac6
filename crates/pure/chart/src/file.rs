//! A chart as a file of its own, for slides and papers.
//!
//! Programs that place drawings know less of style sheets than browsers do: some have no variables, and none asks whether the page
//! is dark. So a file has its width in pixels, its colours written out, white paper below it, and its key above it.

use std::fmt::Write as _;

use crate::STYLE;
use crate::chart::Chart;
use crate::draw::KeyEntry;
use crate::heat::HeatMap;
use crate::layout::{Plot, width_px};
use crate::xml::{Escaped, Name, Px, Svg};

const FILE_STYLE: &str = include_str!("../assets/file.css");
/// Of the whole drawing.
const WIDTH_PX: f64 = 720.0;
const MARGIN_PX: f64 = 16.0;
/// Of the title, with what is below it.
const TITLE_PX: f64 = 26.0;
/// Of a line of the key.
const KEY_PX: f64 = 20.0;
/// A sample, with the space before its name.
const SAMPLE_PX: f64 = 32.0;
const BETWEEN_PX: f64 = 18.0;

impl Chart {
    /// The chart as an SVG document.
    #[must_use]
    pub fn svg_file(&self, name: &Name<'_>) -> String {
        let plot = Plot::new(self);
        let sheet =
            Sheet { name, key: &self.key(), height: plot.height, padding: plot.padding, most_px: WIDTH_PX };
        sheet.written(|svg| self.inside(svg, &plot))
    }
}

impl HeatMap {
    /// The map as an SVG document.
    #[must_use]
    pub fn svg_file(&self, name: &Name<'_>) -> String {
        let frame = self.frame();
        let sheet =
            Sheet { name, key: &[], height: frame.height, padding: frame.padding, most_px: frame.most_px };
        sheet.written(|svg| self.inside(svg, &frame))
    }
}

/// What stands around a drawing.
struct Sheet<'a> {
    name: &'a Name<'a>,
    key: &'a [KeyEntry],
    height: f64,
    padding: [f64; 4],
    most_px: f64,
}

impl Sheet<'_> {
    fn written(&self, inside: impl FnOnce(&mut Svg)) -> String {
        let [above, right, below, left] = self.padding;
        let key = if self.key.len() > 1 { placed(self.key) } else { Vec::new() };
        let key_px = key.last().map_or(0.0, |(_, [_, top])| top + KEY_PX);
        let top = MARGIN_PX + TITLE_PX + key_px + above;
        let height = Px(top + self.height + below + MARGIN_PX);
        let width = Px((WIDTH_PX - 2.0 * MARGIN_PX).min(self.most_px) - left - right);
        let id = Escaped(self.name.id);
        let mut svg = Svg::default();
        svg.open(
            "svg",
            format_args!(
                "xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" width=\"{WIDTH_PX}\" height=\"{height}\" \
                 viewBox=\"0 0 {WIDTH_PX} {height}\" aria-labelledby=\"{id}-title {id}-desc\""
            ),
        );
        svg.leaf("title", format_args!("id=\"{id}-title\""), self.name.title);
        svg.leaf("desc", format_args!("id=\"{id}-desc\""), self.name.description);
        svg.leaf("style", format_args!("type=\"text/css\""), &style());
        svg.shape("rect", format_args!("class=\"page\" width=\"{WIDTH_PX}\" height=\"{height}\""), "");
        let heading = format_args!("class=\"heading\" x=\"{MARGIN_PX}\" y=\"{}\"", Px(MARGIN_PX + 12.0));
        svg.leaf("text", heading, self.name.title);
        svg.group("keys", |svg| {
            for (entry, [left, top]) in &key {
                let [left, top] = [MARGIN_PX + left, MARGIN_PX + TITLE_PX + top];
                svg.open("g", format_args!("transform=\"translate({} {})\"", Px(left), Px(top)));
                entry.draw(svg);
                svg.leaf("text", format_args!("x=\"{SAMPLE_PX}\" y=\"10\""), &entry.name);
                svg.close("g");
            }
        });
        svg.open(
            "svg",
            format_args!(
                "x=\"{}\" y=\"{}\" width=\"{width}\" height=\"{}\" overflow=\"visible\"",
                Px(MARGIN_PX + left),
                Px(top),
                Px(self.height)
            ),
        );
        inside(&mut svg);
        svg.close("svg");
        svg.close("svg");
        svg.into_string()
    }
}

/// Each entry with its place, from left to right in as many lines as it takes.
fn placed(key: &[KeyEntry]) -> Vec<(&KeyEntry, [f64; 2])> {
    let (mut left, mut top) = (0.0, 0.0);
    let mut place = |width: f64| {
        if left > 0.0 && left + width > WIDTH_PX - 2.0 * MARGIN_PX {
            (left, top) = (0.0, top + KEY_PX);
        }
        let own = [left, top];
        left += width + BETWEEN_PX;
        own
    };
    key.iter().map(|entry| (entry, place(SAMPLE_PX + width_px(&entry.name)))).collect()
}

/// The style sheet of a file, with the light colours of that of pages.
fn style() -> String {
    let mut style = FILE_STYLE.to_owned();
    for (place, colour) in colours().enumerate() {
        let c = format!("c{place}");
        // Writing into a string cannot fail.
        let _ = writeln!(
            style,
            ".chart .{c}.bars, .chart .{c}.marks {{ fill: {colour}; }}\n\
             .chart .lines .{c} polyline, .chart .{c} .dots path, .chart .{c}.stroke line, .chart .{c}.whiskers line, \
             .chart .{c}.rule line {{ stroke: {colour}; }}\n\
             .chart .{c}.rule text {{ fill: {colour}; }}"
        );
    }
    style
}

/// Those of the first block of [`STYLE`].
fn colours() -> impl Iterator<Item = &'static str> {
    // The variables are called c0 to c7.
    let light = STYLE.split_once('}').map_or(STYLE, |(light, _)| light);
    light.lines().filter_map(|line| {
        line.trim().trim_start_matches('-').strip_prefix('c')?.split_once(':')?.1.trim().strip_suffix(';')
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axis, Form, Point, Series, look};

    #[test]
    fn a_file_is_a_document_with_its_colours_and_its_key() {
        assert_eq!(colours().count(), 8);
        let line = |index: usize| Series {
            name: format!("side <{index}>"),
            look: look(index),
            form: Form::Marked,
            points: vec![Point::new(1.0, 2.0), Point::new(2.0, 3.0)],
        };
        let chart = Chart {
            series: (0..12).map(line).collect(),
            ..Chart::new(Axis::from_zero("users"), Axis::from_zero("pages/s"))
        };
        let text = chart.svg_file(&Name { id: "a", title: "T & t", description: "What is seen." });
        let document = roxmltree::Document::parse(&text).unwrap();
        let root = document.root_element();
        assert_eq!(root.tag_name().namespace(), Some("http://www.w3.org/2000/svg"));
        assert!(!text.contains("var(") && text.contains("stroke: #0072b2"), "{text}");
        let texts: Vec<&str> = document.descendants().filter_map(|node| node.text()).collect();
        assert!((0..12).all(|index| texts.contains(&format!("side <{index}>").as_str())), "{texts:?}");
        let key = chart.key();
        let tops = placed(&key).into_iter().map(|(_, [_, top])| top);
        assert!(tops.fold(0.0, f64::max) > 0.0, "twelve names need a second line");
    }
}

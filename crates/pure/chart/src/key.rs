//! Which series is drawn how.

use crate::chart::{Chart, Form, Look};
use crate::marks::outline;
use crate::xml::Svg;

/// An entry of a chart's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyEntry {
    /// What it is called.
    pub name: String,
    look: Look,
    form: Form,
}

impl Chart {
    /// The series that have a name and values, each once.
    #[must_use]
    pub fn key(&self) -> Vec<KeyEntry> {
        let named = self.series.iter().filter(|series| !series.name.is_empty() && !series.points.is_empty());
        let mut entries: Vec<KeyEntry> = Vec::new();
        for series in named {
            let entry = KeyEntry { name: series.name.clone(), look: series.look, form: series.form };
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        entries
    }
}

impl KeyEntry {
    /// A sample of it, without its name.
    #[must_use]
    pub fn sample(&self) -> String {
        let mut svg = Svg::default();
        svg.open(
            "svg",
            format_args!("class=\"chart sample\" width=\"26\" height=\"12\" aria-hidden=\"true\""),
        );
        self.draw(&mut svg);
        svg.close("svg");
        svg.into_string()
    }
    /// The same within 26 by 12 pixels of something else.
    pub(crate) fn draw(&self, svg: &mut Svg) {
        let classes = self.look.classes();
        if matches!(self.form, Form::Line | Form::Marked) {
            svg.open("g", format_args!("class=\"stroke {classes}\""));
            svg.shape("line", format_args!("x1=\"1\" x2=\"25\" y1=\"6\" y2=\"6\""), "");
            svg.close("g");
        }
        if matches!(self.form, Form::Marks | Form::Marked) {
            svg.open("g", format_args!("class=\"marks {classes}\" transform=\"translate(13 6)\""));
            svg.shape("path", format_args!("d=\"{}\"", outline(self.look.shape)), "");
            svg.close("g");
        }
        if matches!(self.form, Form::Bars | Form::Stack | Form::Spans) {
            svg.open("g", format_args!("class=\"bars {classes}\""));
            svg.shape("rect", format_args!("x=\"7\" width=\"12\" height=\"12\""), "");
            svg.close("g");
        }
    }
}

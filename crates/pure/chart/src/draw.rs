//! A chart as markup.

use crate::axis::Scale;
use crate::chart::{Chart, Form, Look, Rule};
use crate::layout::{LINE_PX, NAME_PX, Plot, classes, reach, shortened, width_px};
use crate::marks::{self, outline};
use crate::xml::{Escaped, Name, Percent, Px, Svg};

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
        bands(svg, self, plot);
        grid(svg, self, plot);
        rules(svg, self, plot);
        marks::series(svg, self, plot);
        ticks(svg, self, plot);
    }
}

/// Lines at ticks, behind the values: upright ones where these are read from left to right, or on a logarithmic axis.
pub(crate) fn grid(svg: &mut Svg, chart: &Chart, plot: &Plot) {
    svg.group("grid", |svg| {
        if plot.has_rows || chart.x.scale == Scale::Logarithmic {
            for share in plot.x.ticks.iter().filter_map(|tick| plot.x.at(tick.value)) {
                let x = Percent(share);
                svg.shape("line", format_args!("x1=\"{x}\" x2=\"{x}\" y2=\"{}\"", Px(plot.height)), "");
            }
        }
        if !plot.has_rows {
            for y in plot.y.ticks.iter().filter_map(|tick| plot.down(tick.value)).map(Px) {
                svg.shape("line", format_args!("x2=\"100%\" y1=\"{y}\" y2=\"{y}\""), "");
            }
        }
    });
    svg.group("base", |svg| {
        if plot.has_rows {
            let x = Percent(plot.x.base());
            svg.shape("line", format_args!("x1=\"{x}\" x2=\"{x}\" y2=\"{}\"", Px(plot.height)), "");
        } else {
            let y = Px(plot.height * (1.0 - plot.y.base()));
            svg.shape("line", format_args!("x2=\"100%\" y1=\"{y}\" y2=\"{y}\""), "");
        }
    });
}

/// Names of values beside the plot.
pub(crate) fn ticks(svg: &mut Svg, chart: &Chart, plot: &Plot) {
    svg.group("up", |svg| {
        for tick in &plot.y.ticks {
            let Some(down) = plot.down(tick.value) else { continue };
            let shown = shortened(&tick.text, NAME_PX);
            named(svg, down, &shown, if shown == tick.text { "" } else { &tick.text });
        }
    });
    svg.group("across", |svg| {
        across(svg, plot, plot.height + LINE_PX);
        if plot.is_tall {
            across(svg, plot, -6.0);
        }
    });
    let [top, _, _, left] = plot.padding;
    svg.group("titles", |svg| {
        if !chart.y.title.is_empty() {
            svg.leaf(
                "text",
                format_args!("x=\"{}\" y=\"{}\"", Px(-left), Px(LINE_PX - 4.0 - top)),
                &chart.y.title,
            );
        }
        if !chart.x.title.is_empty() {
            let attributes = format_args!(
                "x=\"50%\" y=\"{}\" text-anchor=\"middle\"",
                Px(plot.height + 2.0 * LINE_PX + 4.0)
            );
            svg.leaf("text", attributes, &chart.x.title);
        }
    });
}

/// A tick beside the plot, with its whole name where that is too long.
fn named(svg: &mut Svg, down: f64, shown: &str, whole: &str) {
    let place = format_args!("x=\"-8\" y=\"{}\" dy=\".35em\"", Px(down));
    if whole.is_empty() {
        return svg.leaf("text", place, shown);
    }
    svg.add(format_args!("<g><title>{}</title>", Escaped(whole)));
    svg.leaf("text", place, shown);
    svg.close("g");
}

/// Ticks below or above the plot. Those without room in a narrow column have a class by which it leaves them out.
fn across(svg: &mut Svg, plot: &Plot, y: f64) {
    let placed: Vec<(f64, &str)> =
        plot.x.ticks.iter().filter_map(|tick| Some((plot.x.at(tick.value)?, tick.text.as_str()))).collect();
    for ((share, text), class) in placed.iter().zip(classes(&placed, plot.narrow)) {
        let over = width_px(text) / 2.0;
        let anchor = match share {
            share if *share > 0.99 && over > plot.padding[1] => " text-anchor=\"end\"",
            share if *share < 0.01 && over > plot.padding[3] => " text-anchor=\"start\"",
            _ => "",
        };
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        svg.leaf("text", format_args!("x=\"{}\" y=\"{}\"{anchor}{class}", Percent(*share), Px(y)), text);
    }
}

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

/// Behind everything else.
pub(crate) fn bands(svg: &mut Svg, chart: &Chart, plot: &Plot) {
    svg.group("bands", |svg| {
        for band in &chart.bands {
            if plot.has_rows {
                if let [Some(from), Some(to)] = band.map(|end| plot.x.at(end)) {
                    let (from, to) = (from.min(to), from.max(to));
                    let attributes = format_args!(
                        "x=\"{}\" width=\"{}\" height=\"{}\"",
                        Percent(from),
                        Percent(to - from),
                        Px(plot.height)
                    );
                    svg.shape("rect", attributes, "");
                }
            } else if let [Some(from), Some(to)] = band.map(|end| plot.down(end)) {
                let (from, to) = (from.min(to), from.max(to));
                svg.shape(
                    "rect",
                    format_args!("y=\"{}\" width=\"100%\" height=\"{}\"", Px(from), Px(to - from)),
                    "",
                );
            }
        }
    });
}

/// Each line with its label: above the plot where the chart has rows, else on its right.
pub(crate) fn rules(svg: &mut Svg, chart: &Chart, plot: &Plot) {
    for (rule, label) in chart.rules.iter().zip(&plot.rule_labels) {
        svg.group(&format!("rule {}", rule.look.classes()), |svg| {
            if plot.has_rows { upright(svg, rule, *label, plot) } else { level(svg, rule, *label, plot) }
        });
    }
}

fn upright(svg: &mut Svg, rule: &Rule, line: f64, plot: &Plot) {
    let Some(share) = plot.x.at(rule.at) else { return };
    let above = 6.0 + LINE_PX * (line + if plot.is_tall { 1.0 } else { 0.0 });
    let x = Percent(share);
    svg.shape(
        "line",
        format_args!("x1=\"{x}\" x2=\"{x}\" y1=\"{}\" y2=\"{}\"", Px(2.0 - above), Px(plot.height)),
        "",
    );
    // At the edges a text stands beside the middle of its line.
    let text_px = width_px(&rule.label);
    let [begin, _] = reach(share, text_px, plot.narrow);
    let anchor = match begin {
        begin if begin <= 0.0 => "start",
        begin if begin + text_px >= plot.narrow => "end",
        _ => "middle",
    };
    svg.leaf("text", format_args!("x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\"", Px(-above)), &rule.label);
}

fn level(svg: &mut Svg, rule: &Rule, down: f64, plot: &Plot) {
    let Some(y) = plot.down(rule.at).map(Px) else { return };
    svg.shape("line", format_args!("x2=\"100%\" y1=\"{y}\" y2=\"{y}\""), "");
    svg.leaf("text", format_args!("x=\"100%\" y=\"{}\" dx=\"6\" dy=\".35em\"", Px(down)), &rule.label);
}

//! Lines and shades across the plot.

use crate::chart::{Chart, Rule};
use crate::layout::{LINE_PX, Plot, reach};
use crate::text::width_px;
use crate::xml::{Percent, Px, Svg};

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

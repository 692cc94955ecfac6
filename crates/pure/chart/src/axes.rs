//! Grid, ticks and titles.

use crate::axis::Scale;
use crate::chart::Chart;
use crate::layout::{LINE_PX, NAME_PX, Plot, classes};
use crate::text::{shortened, width_px};
use crate::xml::{Escaped, Percent, Px, Svg};

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

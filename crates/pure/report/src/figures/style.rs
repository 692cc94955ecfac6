//! What all figures have in common.

use plotly::Layout;
use plotly::common::{Anchor, DashType, Font, HoverInfo, Orientation, Title};
use plotly::layout::{Annotation, Axis, AxisType, HoverMode, Legend, Margin};

use crate::run::Which;

/// Blue of the palette of Okabe and Ito, which readers with any colour vision can tell apart.
pub(crate) const NATIVE_COLOUR: &str = "#0072B2";
/// Vermilion of the same palette.
pub(crate) const VM_COLOUR: &str = "#D55E00";

pub(super) const INK: &str = "#1f2933";
pub(super) const FAINT: &str = "#e4e7eb";
pub(super) const MUTED: &str = "#52606d";
const CLEAR: &str = "rgba(0,0,0,0)";
const FONTS: &str = "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

/// The colour in which a side is drawn everywhere.
pub(super) fn colour(which: Which) -> &'static str {
    match which {
        Which::Native => NATIVE_COLOUR,
        Which::Vm => VM_COLOUR,
    }
}

/// A layout without decoration; the page gives it its size.
pub(super) fn layout() -> Layout {
    Layout::new()
        .auto_size(true)
        .font(Font::new().family(FONTS).size(12).color(INK))
        .paper_background_color(CLEAR)
        .plot_background_color(CLEAR)
        .margin(Margin::new().left(56).right(16).top(36).bottom(48))
        .hover_mode(HoverMode::Closest)
        .legend(
            Legend::new()
                .orientation(Orientation::Horizontal)
                .x(0.0)
                .y(1.02)
                .x_anchor(Anchor::Left)
                .y_anchor(Anchor::Bottom),
        )
}

/// An axis with a title, faint grid lines and room for its labels.
pub(super) fn axis(title: &str) -> Axis {
    Axis::new()
        .title(Title::with_text(title).font(Font::new().size(12).color(MUTED)))
        .grid_color(FAINT)
        .line_color(FAINT)
        .zero_line(false)
        .auto_margin(true)
        .fixed_range(true)
}

/// The same axis with logarithmic steps: ticks at 1, 2 and 5 of each power of ten, so that even a range
/// of less than tenfold has some.
pub(super) fn logarithmic(axis: Axis) -> Axis {
    let ticks: Vec<f64> =
        (-4..9).flat_map(|power| [1.0, 2.0, 5.0].map(|step| step * 10f64.powi(power))).collect();
    let texts = ticks.iter().map(|tick| plain(*tick)).collect();
    axis.type_(AxisType::Log).tick_values(ticks).tick_text(texts).tick_angle(0.0)
}

/// 0.002, 50, 20k, 5M.
fn plain(tick: f64) -> String {
    match tick {
        tick if tick > 0.9e6 => format!("{}M", (tick / 1e6).round()),
        tick if tick > 0.9e3 => format!("{}k", (tick / 1e3).round()),
        tick => format!("{}", (tick * 1e4).round() / 1e4),
    }
}

/// Text at a place of the figure, without an arrow.
pub(super) fn note(text: impl AsRef<str>, size: usize, ink: &'static str) -> Annotation {
    Annotation::new().text(text).show_arrow(false).font(Font::new().size(size).color(ink))
}

/// Hover shows exactly the text given.
pub(super) const HOVER: HoverInfo = HoverInfo::Text;

/// Eight colours that readers with any colour vision can tell apart (Okabe and Ito, their yellow
/// replaced by a grey that shows on white).
const COLOURS: [&str; 8] =
    [NATIVE_COLOUR, VM_COLOUR, "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7a7a7a"];

/// How the line of one among many is drawn: its colour, its line as CSS and as plotly.js call it. They
/// repeat after 32.
pub(super) fn palette(index: usize) -> (&'static str, &'static str, DashType) {
    let colour = COLOURS[index % COLOURS.len()];
    match index / COLOURS.len() % 4 {
        0 => (colour, "solid", DashType::Solid),
        1 => (colour, "dashed", DashType::Dash),
        2 => (colour, "dotted", DashType::Dot),
        _ => (colour, "double", DashType::LongDashDot),
    }
}

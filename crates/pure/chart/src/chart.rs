//! What a chart shows.

use crate::axis::Axis;

/// Height of a plot whose vertical axis has no rows.
const HEIGHT_PX: f64 = 240.0;

/// Values over two axes. Where the vertical axis has categories, these are rows from top to bottom, and the values lie along the
/// horizontal axis.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// What is drawn, the last on top.
    pub series: Vec<Series>,
    /// Lines across the plot.
    pub rules: Vec<Rule>,
    /// What is shaded across the plot, from one value of that axis to the other.
    pub bands: Vec<[f64; 2]>,
    /// Height of the plot in pixels; rows have their own.
    pub height_px: f64,
}

impl Chart {
    /// A chart without values.
    #[must_use]
    pub fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, series: Vec::new(), rules: Vec::new(), bands: Vec::new(), height_px: HEIGHT_PX }
    }
}

/// Values that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What the key calls it; empty where it needs no entry.
    pub name: String,
    /// Its colour, and what tells it from others of that colour.
    pub look: Look,
    /// As what it is drawn.
    pub form: Form,
    /// In the order in which a line goes through them.
    pub points: Vec<Point>,
}

/// As what values are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A line.
    Line,
    /// A line with a mark at each value.
    Marked,
    /// Marks alone.
    Marks,
    /// Bars in rows, those of several series below each other.
    Bars,
    /// Bars in rows, each series behind the one before it.
    Stack,
    /// Faint bars from one end of each interval to the other, in rows: what connects two marks.
    Spans,
}

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// On the horizontal axis.
    pub x: f64,
    /// On the vertical axis.
    pub y: f64,
    /// Its interval on the axis of values, which is the vertical one unless the chart has rows.
    pub interval: Option<[f64; 2]>,
    /// What a pointer over it shows; may have several lines.
    pub hover: String,
    /// What stands beside it, in rows.
    pub label: String,
}

impl Point {
    /// A value with nothing to it.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, interval: None, hover: String::new(), label: String::new() }
    }

    /// The same with what a pointer over it shows.
    #[must_use]
    pub fn hover(self, hover: impl Into<String>) -> Self {
        Self { hover: hover.into(), ..self }
    }

    /// The same with its interval.
    #[must_use]
    pub fn between(self, interval: Option<[f64; 2]>) -> Self {
        Self { interval, ..self }
    }

    /// The same with a text beside it.
    #[must_use]
    pub fn label(self, label: impl Into<String>) -> Self {
        Self { label: label.into(), ..self }
    }
}

/// How a series is told from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// One of the eight colours of the style sheet.
    pub colour: u8,
    /// Of lines.
    pub dash: Dash,
    /// Of marks.
    pub shape: Shape,
}

/// How a line is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dash {
    /// Not at all.
    Solid,
    /// Into dashes.
    Dashed,
    /// Into dots.
    Dotted,
    /// Into both in turn.
    Mixed,
}

/// Of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A disc.
    Circle,
    /// A square.
    Square,
    /// A square on its tip.
    Diamond,
    /// A triangle.
    Triangle,
    /// Two strokes.
    Cross,
}

/// The look of one among many: readers with any colour vision can tell eight apart by colour, and on paper without colours by
/// their marks. They repeat after 32.
#[must_use]
pub fn look(index: usize) -> Look {
    const DASHES: [Dash; 4] = [Dash::Solid, Dash::Dashed, Dash::Dotted, Dash::Mixed];
    const SHAPES: [Shape; 4] = [Shape::Circle, Shape::Square, Shape::Diamond, Shape::Triangle];
    let colour = u8::try_from(index % 8).unwrap_or(0);
    Look { colour, dash: DASHES[index / 8 % 4], shape: SHAPES[index % 4] }
}

impl Look {
    /// The same as one of the eight colours.
    #[must_use]
    pub fn of_colour(colour: u8) -> Self {
        Self { colour: colour % 8, dash: Dash::Solid, shape: Shape::Circle }
    }

    /// The same with another line.
    #[must_use]
    pub fn dashed(self, dash: Dash) -> Self {
        Self { dash, ..self }
    }

    /// The same with other marks.
    #[must_use]
    pub fn shaped(self, shape: Shape) -> Self {
        Self { shape, ..self }
    }

    /// Its classes in the style sheet.
    pub(crate) fn classes(self) -> String {
        let dash = match self.dash {
            Dash::Solid => "",
            Dash::Dashed => " dashed",
            Dash::Dotted => " dotted",
            Dash::Mixed => " mixed",
        };
        format!("c{}{dash}", self.colour % 8)
    }
}

/// A line across the plot at a value: horizontal, or vertical where the chart has rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// On the axis of values.
    pub at: f64,
    /// What is written at its end.
    pub label: String,
    /// Its colour and line.
    pub look: Look,
}

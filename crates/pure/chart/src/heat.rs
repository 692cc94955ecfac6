//! Heat maps: a number for each row and column, as a colour and in writing.

use crate::axis::Axis;
use crate::colours::Colours;
use crate::layout::{LINE_PX, NAME_PX};
use crate::name::Name;
use crate::placed::Placed;
use crate::text::{NARROW_PX, shortened, width_px};
use crate::xml::{Escaped, Percent, Px, Svg};

const ROW_PX: f64 = 34.0;
/// No column is wider.
const COLUMN_PX: f64 = 180.0;
/// Rectangles of which the scale of colours is made.
const SCALE_STEPS: usize = 24;
const SCALE_PX: f64 = 8.0;

/// A number for each row and column.
#[derive(Debug, Clone, PartialEq)]
pub struct HeatMap {
    /// What columns are.
    pub x_title: String,
    /// What rows are.
    pub y_title: String,
    /// From left to right.
    pub columns: Vec<String>,
    /// From top to bottom.
    pub rows: Vec<String>,
    /// Row by row; what is missing is empty.
    pub cells: Vec<Vec<Cell>>,
    /// How numbers become colours.
    pub colours: Colours,
    /// Written at places of the scale of colours, from one end to the other.
    pub scale: Vec<String>,
}

/// One number.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Cell {
    /// Nothing where nothing is known.
    pub value: Option<f64>,
    /// What is written there.
    pub text: String,
    /// What a pointer over it shows.
    pub hover: String,
}

/// How much room cells have, and texts around them.
pub(crate) struct Frame {
    pub(crate) height: f64,
    /// Pixels above, right of, below and left of the cells.
    pub(crate) padding: [f64; 4],
    /// The width beyond which the map does not grow.
    pub(crate) most_px: f64,
}

impl HeatMap {
    /// The map as an `svg` element.
    #[must_use]
    pub fn svg(&self, name: &Name<'_>) -> String {
        let frame = self.frame();
        let mut svg = Svg::default();
        name.open(&mut svg, frame.height, frame.padding, Some(frame.most_px));
        self.inside(&mut svg, &frame);
        svg.close("svg");
        svg.into_string()
    }

    pub(crate) fn frame(&self) -> Frame {
        let height = (ROW_PX * self.rows.len() as f64).max(ROW_PX);
        let names = self.rows.iter().map(|row| width_px(&shortened(row, NAME_PX)));
        let left = (names.fold(16.0, f64::max) + 8.0).ceil();
        let padding = [14.0 + LINE_PX, 4.0, 3.0 * LINE_PX + 32.0, left];
        Frame { height, padding, most_px: left + COLUMN_PX * self.columns.len() as f64 }
    }

    /// Everything within the frame and beside it.
    pub(crate) fn inside(&self, svg: &mut Svg, &Frame { height, padding: [_, _, _, left], .. }: &Frame) {
        let place = |title: &str, names: &[String]| {
            Placed::new(&Axis::categories(title, names.to_vec()), &[], &[], &|_| true)
        };
        let (across, down) = (place(&self.x_title, &self.columns), place(&self.y_title, &self.rows));
        svg.group("cells", |svg| {
            for (row, cells) in self.cells.iter().enumerate() {
                for (column, cell) in cells.iter().enumerate() {
                    if let (Some(across), Some(down)) =
                        (across.extent(column as f64), down.extent(row as f64))
                    {
                        self.cell(svg, cell, across, down.map(|share| share * height));
                    }
                }
            }
        });
        self.names(svg, &across, &down, height, left);
        self.colour_scale(svg, height + 2.0 * LINE_PX + 16.0);
    }

    fn cell(&self, svg: &mut Svg, cell: &Cell, [left, right]: [f64; 2], [top, bottom]: [f64; 2]) {
        let known = cell.value.filter(|value| value.is_finite()).map(|value| self.colours.of(value));
        let ink = match &known {
            None => "none",
            Some((_, true)) => "light",
            Some((_, false)) => "dark",
        };
        let fill = known.map_or_else(String::new, |(colour, _)| format!(" fill=\"{colour}\""));
        svg.add(format_args!("<g class=\"{ink}\">"));
        if !cell.hover.is_empty() {
            svg.add(format_args!("<title>{}</title>", Escaped(&cell.hover)));
        }
        let place = format_args!(
            "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{fill}",
            Percent(left),
            Px(top),
            Percent(right - left),
            Px(bottom - top)
        );
        svg.shape("rect", place, "");
        let room = (NARROW_PX - 60.0) * (right - left);
        let class = if width_px(&cell.text) > room { " class=\"wide\"" } else { "" };
        let middle = format_args!(
            "x=\"{}\" y=\"{}\" dy=\".35em\"{class}",
            Percent((left + right) / 2.0),
            Px((top + bottom) / 2.0)
        );
        svg.leaf("text", middle, &cell.text);
        svg.close("g");
    }

    fn names(&self, svg: &mut Svg, across: &Placed, down: &Placed, height: f64, left: f64) {
        svg.group("up", |svg| {
            for (row, name) in self.rows.iter().enumerate() {
                let y = Px(down.at(row as f64).unwrap_or(0.0) * height);
                svg.leaf("text", format_args!("x=\"-8\" y=\"{y}\" dy=\".35em\""), &shortened(name, NAME_PX));
            }
        });
        let room = (NARROW_PX - left) / self.columns.len().max(1) as f64;
        svg.group("across", |svg| {
            for (column, name) in self.columns.iter().enumerate() {
                let x = Percent(across.at(column as f64).unwrap_or(0.0));
                svg.leaf(
                    "text",
                    format_args!("x=\"{x}\" y=\"{}\"", Px(height + LINE_PX)),
                    &shortened(name, room.max(30.0)),
                );
            }
        });
        svg.group("titles", |svg| {
            svg.leaf("text", format_args!("x=\"{}\" y=\"-12\"", Px(-left)), &self.y_title);
            let below =
                format_args!("x=\"50%\" y=\"{}\" text-anchor=\"middle\"", Px(height + 2.0 * LINE_PX + 2.0));
            svg.leaf("text", below, &self.x_title);
        });
    }

    fn colour_scale(&self, svg: &mut Svg, top: f64) {
        let width = 1.0 / SCALE_STEPS as f64;
        svg.group("scale", |svg| {
            for (step, value) in self.colours.scale(SCALE_STEPS).into_iter().enumerate() {
                let attributes = format_args!(
                    "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"{}\"",
                    Percent(step as f64 * width),
                    Px(top),
                    Percent(width),
                    Px(SCALE_PX),
                    self.colours.of(value).0
                );
                svg.shape("rect", attributes, "");
            }
        });
        let last = self.scale.len().saturating_sub(1);
        svg.group("across", |svg| {
            for (place, text) in self.scale.iter().enumerate() {
                let anchor = match place {
                    0 => "start",
                    place if place == last => "end",
                    _ => "middle",
                };
                let x = Percent(place as f64 / last.max(1) as f64);
                let attributes = format_args!(
                    "x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\"",
                    Px(top + SCALE_PX + LINE_PX - 2.0)
                );
                svg.leaf("text", attributes, text);
            }
        });
    }
}

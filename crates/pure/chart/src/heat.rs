//! Heat maps: a number for each row and column, as a colour and in writing.

use crate::axis::{Axis, Placed};
use crate::layout::{LINE_PX, NAME_PX, NARROW_PX, shortened, width_px};
use crate::xml::{Escaped, Name, Percent, Px, Svg};

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

/// How numbers become colours.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Colours {
    /// Amounts, from nothing to this: cividis, whose even steps of lightness are the same for readers with any colour vision.
    Amount(f64),
    /// What should be little, from nothing to this: from pale to vermilion.
    Excess(f64),
    /// Ratios, by their logarithm: pale at 1, vermilion at one over this, blue at this.
    Ratio(f64),
}

type Rgb = [f64; 3];

/// Nuñez, Anderton and Renslow, 2018, at every eighth.
const CIVIDIS: [Rgb; 9] = [
    [0.0, 34.0, 78.0],
    [18.0, 53.0, 112.0],
    [59.0, 73.0, 108.0],
    [87.0, 93.0, 109.0],
    [112.0, 113.0, 115.0],
    [138.0, 134.0, 120.0],
    [165.0, 156.0, 116.0],
    [195.0, 179.0, 105.0],
    [254.0, 232.0, 56.0],
];

const PALE: Rgb = [246.0, 245.0, 241.0];

const WARM: [Rgb; 3] = [PALE, [238.0, 160.0, 104.0], [200.0, 80.0, 0.0]];

const COLD: [Rgb; 3] = [PALE, [120.0, 172.0, 212.0], [0.0, 98.0, 160.0]];

impl Colours {
    /// The colour of a number, and whether writing on it has to be light.
    pub(crate) fn of(self, value: f64) -> (String, bool) {
        let colour = match self {
            Self::Amount(most) => between(&CIVIDIS, value / most),
            Self::Excess(most) => between(&WARM, value / most),
            Self::Ratio(most) => {
                let share = value.max(f64::MIN_POSITIVE).ln() / most.max(1.0 + 1e-9).ln();
                between(if share < 0.0 { &WARM } else { &COLD }, share.abs())
            }
        };
        let [red, green, blue] = colour.map(f64::round);
        // Contrast with white and with black is equal at this lightness.
        (format!("rgb({red},{green},{blue})"), luminance(colour) < 0.179)
    }

    /// Values from one end to the other, evenly spaced to the eye.
    pub(crate) fn scale(self, steps: usize) -> Vec<f64> {
        let shares = (0..steps).map(|step| step as f64 / (steps.max(2) - 1) as f64);
        match self {
            Self::Amount(most) | Self::Excess(most) => shares.map(|share| share * most).collect(),
            Self::Ratio(most) => shares.map(|share| most.powf(2.0 * share - 1.0)).collect(),
        }
    }
}

fn between(colours: &[Rgb], share: f64) -> Rgb {
    let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
    let along = share * (colours.len() - 1) as f64;
    let pairs = colours.windows(2).enumerate();
    let found = pairs.map(|(place, pair)| (along - place as f64, pair)).find(|(rest, _)| *rest <= 1.0);
    let Some((rest, [from, to])) = found.map(|(rest, pair)| (rest, [pair[0], pair[1]])) else {
        return PALE;
    };
    [0, 1, 2].map(|part| from[part] + (to[part] - from[part]) * rest)
}

/// As WCAG 2 defines it.
fn luminance(colour: Rgb) -> f64 {
    let linear = |part: f64| {
        let share = part / 255.0;
        if share <= 0.04045 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    };
    let [red, green, blue] = colour.map(linear);
    0.2126 * red + 0.7152 * green + 0.0722 * blue
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_have_their_colours_and_what_is_no_number_has_one_too() {
        assert_eq!(Colours::Amount(8.0).of(8.0), ("rgb(254,232,56)".into(), false));
        assert_eq!(Colours::Amount(8.0).of(1.0), ("rgb(18,53,112)".into(), true));
        assert_eq!(Colours::Ratio(4.0).of(1.0), Colours::Excess(1.0).of(0.0));
        assert_eq!(Colours::Ratio(4.0).of(0.25), Colours::Excess(1.0).of(1.0));
        assert_eq!(Colours::Ratio(4.0).of(f64::NAN), Colours::Ratio(4.0).of(0.0));
        assert_eq!(Colours::Ratio(4.0).scale(3), [0.25, 1.0, 4.0]);
    }

    /// Contrast of two colours, as WCAG 2 defines it.
    fn contrast(one: Rgb, other: Rgb) -> f64 {
        let (one, other) = (luminance(one), luminance(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }

    fn variable(theme: &str, name: &str) -> Rgb {
        let (_, rest) = theme.split_once(&format!("--{name}: #")).unwrap();
        [0, 2, 4].map(|at| f64::from(u8::from_str_radix(&rest[at..at + 2], 16).unwrap()))
    }

    #[test]
    fn lines_marks_and_texts_stand_out_from_the_page_in_both_themes() {
        let (light, dark) = crate::STYLE.split_once("prefers-color-scheme: dark").unwrap();
        for theme in [light, dark] {
            let page = variable(theme, "page");
            for colour in 0..8 {
                let found = contrast(variable(theme, &format!("c{colour}")), page);
                assert!(found >= 3.0, "c{colour}: {found}");
            }
            for text in ["ink", "muted"] {
                assert!(contrast(variable(theme, text), page) >= 4.5, "{text}");
            }
        }
    }

    #[test]
    fn writing_on_a_colour_can_be_read() {
        for share in 0..=100 {
            for colours in [&CIVIDIS[..], &WARM, &COLD] {
                let colour = between(colours, f64::from(share) / 100.0);
                let ink = if luminance(colour) < 0.179 { [255.0; 3] } else { [17.0; 3] };
                assert!(contrast(colour, ink) >= 4.0, "{colour:?}");
            }
        }
    }
}

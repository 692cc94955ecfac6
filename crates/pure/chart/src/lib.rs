//! Charts as SVG in a page: a description goes in, markup comes out, which is readable without scripts.
//!
//! Horizontal places are percentages of the plot, vertical ones pixels. So a chart is as wide as its column, and its texts and
//! lines keep their size: in a window, in a narrow one and on paper. Lines go through an inner `svg` that is stretched, with
//! strokes that are not. Colours are variables of [`STYLE`], which has a light and a dark set, and which the page must carry.
//!
//! ```
//! use virtbench_chart::{Axis, Chart, Form, Name, Point, Series, look};
//!
//! let points = [(1.0, 120.0), (2.0, 180.0)].map(|(users, rate)| Point::new(users, rate));
//! let line = Series { name: "native".into(), look: look(0), form: Form::Marked, points: points.into() };
//! let chart = Chart { series: vec![line], ..Chart::new(Axis::from_zero("users"), Axis::from_zero("pages a second")) };
//! let name = Name { id: "users", title: "Users", description: "Pages a second against users." };
//! assert!(chart.svg(&name).starts_with("<svg class=\"chart\" role=\"img\""));
//! ```

mod axis;
mod characters;
mod chart;
mod draw;
mod file;
mod heat;
mod layout;
mod marks;
mod ticks;
mod xml;

pub use axis::{Axis, Scale};
pub use chart::{Chart, Dash, Form, Look, Point, Rule, Series, Shape, look};
pub use draw::KeyEntry;
pub use heat::{Cell, Colours, HeatMap};
pub use xml::Name;

/// What a page with charts must have among its styles.
pub const STYLE: &str = include_str!("../assets/chart.css");

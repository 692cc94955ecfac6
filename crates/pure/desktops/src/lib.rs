//! What users of desktops do in a day ([Platform 2014], section III.D), and the marker by which the picture tells them, and whoever
//! measures, when it is done.
//!
//! ```text
//! Day (a file) -> itinerary of a user, from a seed -> Order to the session
//! Marker -> cells of two shades -> picture -> protocol -> picture -> Marker, or none
//! ```

mod act;
mod address;
mod check;
mod day;
mod duration;
mod error;
mod itinerary;
mod link;
mod marker;
mod order;
mod parse;
pub mod supplied;

pub use act::{Act, Until};
pub use address::{NoAddress, VncAddress};
pub use day::{Application, Day, Group, Limits, Operation, Think};
pub use error::DayError;
pub use itinerary::{Itinerary, Step};
pub use link::{Link, NoLink, OneWay};
pub use marker::{CELL, HEIGHT, Marker, Phase, Unreadable, WIDTH, level, read_marker};
pub use order::{Answer, Ending, LONGEST_LINE, Order, Request};

//! What users of desktops do in a day ([Platform 2014], section III.D), and the marker by which the picture tells them, and the
//! controller, when it is done.
//!
//! ```text
//! Day (a file) -> itinerary of a user, from a seed -> Order to the session
//! Marker -> cells of two shades -> picture -> protocol -> picture -> Marker, or none
//! ```

mod act;
mod address;
mod cells;
mod check;
mod day;
mod duration;
mod error;
mod frame_number;
mod itinerary;
mod link;
mod marker;
mod order;
mod parse;
pub mod supplied;

pub use act::{Act, Until, Video};
pub use address::{NoAddress, VncAddress};
pub use cells::{CELL, HEIGHT, Unreadable, WIDTH};
pub use day::{Application, Day, Group, Limits, Operation, Think};
pub use error::DayError;
pub use frame_number::{find_frame_number, frame_level, read_frame_number};
pub use itinerary::{Itinerary, Step};
pub use link::{Link, NoLink, OneWay};
pub use marker::{Marker, Phase, level, read_marker};
pub use order::{Answer, Ending, LONGEST_LINE, Order, Request, STILL};

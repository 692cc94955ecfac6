//! What users of desktops do in a day ([Platform 2014], section III.D), and the marker by which the picture tells them, and the
//! controller, when it is done.
//!
//! ```text
//! Day (a file) -> itinerary of a user, from a seed -> Order to the session
//! Marker -> cells of two shades -> picture -> protocol -> picture -> Marker, or none
//! ```

mod address;
mod day;
mod duration;
mod itinerary;
mod link;
mod marker;
mod order;
pub mod supplied;

pub use address::{NoAddress, VncAddress};
pub use day::{Act, Application, Day, DayError, Group, Limits, Operation, Think, Until, Video};
pub use itinerary::{Itinerary, Step};
pub use link::{Link, NoLink, OneWay};
pub use marker::{
    CELL, HEIGHT, Marker, Phase, Unreadable, WIDTH, find_frame_number, frame_level, level, read_frame_number,
    read_marker,
};
pub use order::{Answer, Ending, LONGEST_LINE, Order, Request, STILL};

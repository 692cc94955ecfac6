//! What runs inside a desktop's session. It draws the marker, starts applications, and knows when an operation is over.
//!
//! ```text
//! orders (TCP, a line of JSON each) -> Session -> marker in the lower right corner of the screen
//!    X11: windows, keys, what is drawn, what answers; files; processes
//! ```
//!
//! One thread waits for the X server and for the controller, and costs nothing while nothing is watched. It speaks X11 without a
//! C library, so that it can be carried into any session as part of a static program.

mod controller;
mod display;
mod error;
mod session;
mod watch;

pub use error::SessionError;
pub use session::run;

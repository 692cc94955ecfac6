//! Users of many desktops in one thread: they type through the protocol, watch the picture, and time what they see.
//!
//! ```text
//! drive ── a task for each user: Itinerary -> order to the session, keys -> picture -> marker -> times
//!    \──── one thread, one clock: that of the user before the picture
//! ```
//!
//! An operation is timed from its last key, or from the marker of its beginning where nothing is typed, to the read that brings the
//! marker of its end. Beside it stands what needs no help from inside: from the same moment to the first and to the last change of
//! the picture.
//!
//! An operation that has to stand still ends with the last marker of an end: something was drawn after each of the others.
//!
//! Where nobody is inside, an operation ends with the last picture that is new before the picture stands still: for a moment, a round trip
//! of the link, and no update of which a part has come already. What changes all the time is found before users begin, and left out.
//!
//! A video's frames carry their numbers in the picture ([`virtbench_desktops::frame_level`]). While one plays, every picture that
//! arrives is looked at for the number in it.

mod control;
mod desk;
mod drawn_desktop;
mod drive;
mod operation;
mod outcome;
mod restless;
mod screen;
mod video;

pub use control::{Fault, FaultKind};
pub use desk::{Desk, SlowLinks, carry, slow_down};
pub use drawn_desktop::{Drawing, DrawnDesktop, SecondStep};
pub use drive::{UsersPlan, drive};
pub use outcome::{OperationDone, Screenshot, Times, UsersEvent, VideoSeen};
pub use virtbench_rfb::Rectangle;

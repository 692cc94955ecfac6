//! What is done to a fence's devices: by commands while they are not served, by the daemon (`live`) while it does.

mod calibrate;
mod drain;
mod edit;
mod format;
mod held;
mod inspect;
mod live;
mod live_members;
mod members;
mod offer;
mod resize;
mod resize_error;
mod room;

pub use calibrate::{CalibrateError, CalibrateOptions, calibrate, describe, keep};
pub use drain::{Drained, drain};
pub use edit::{DiskEdit, EditError, RotationEdit, add_to_file, edit, remove_from_file};
pub use format::format;
pub use held::{GivenUp, Why};
pub use inspect::{CacheFacts, HomeFacts, Inspected, PartitionFacts, inspect};
pub use live::Live;
pub(crate) use live_members::{Handed, Serving};
pub use members::{add, remove};
pub use offer::Offer;
pub use resize::{Change, ResizeStep, resize};
pub use resize_error::ResizeError;

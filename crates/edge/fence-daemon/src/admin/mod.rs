//! What is done to a fence's devices: by commands while they are not served, by the daemon (`live`) while it does.

mod bench;
mod calibrate;
mod drain;
mod edit;
mod format;
mod given_up;
mod held;
mod inspect;
mod live;
mod live_members;
mod members;
mod offer;
mod resize;
mod resize_error;
mod room;
mod salvage;

pub use calibrate::{CalibrateError, CalibrateOptions, calibrate, describe, keep};
pub use drain::{Drained, drain};
pub use edit::{DiskEdit, EditError, RotationEdit, add_to_file, edit, remove_from_file};
pub use format::format;
pub use given_up::{GivenUp, Why};
pub use inspect::{CacheFacts, HomeFacts, Inspected, PartitionFacts, inspect};
pub use live::Live;
pub(crate) use live_members::{Handed, Serving};
pub use members::{add, remove};
pub use offer::Offer;
pub use resize::{Change, ResizeStep, resize};
pub use resize_error::ResizeError;

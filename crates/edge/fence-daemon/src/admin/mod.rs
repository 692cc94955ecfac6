//! What is done to a fence's devices: by commands while nobody serves them, by the daemon (`live`) while it does.

mod bench;
mod calibrate;
mod edit;
mod inspect;
mod live;
mod resize;
mod room;

pub use calibrate::{CalibrateError, CalibrateOptions, calibrate, describe, keep};
pub use edit::{DiskEdit, EditError, RotationEdit, edit};
pub use inspect::{CacheFacts, HomeFacts, Inspected, PartitionFacts, inspect};
pub use live::Live;
pub use resize::{Change, ResizeError, Step, resize};

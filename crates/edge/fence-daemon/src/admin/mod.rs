//! What is done to a fence's devices while nobody serves them.

mod bench;
mod calibrate;
mod edit;
mod inspect;
mod resize;
mod room;

pub use calibrate::{CalibrateError, CalibrateOptions, calibrate, describe, keep};
pub use edit::{DiskEdit, EditError, RotationEdit, edit};
pub use inspect::{CacheFacts, HomeFacts, Inspected, PartitionFacts, inspect};
pub use resize::{Change, ResizeError, Step, resize};

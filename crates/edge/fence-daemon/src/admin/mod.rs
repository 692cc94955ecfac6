//! What is done to a fence's devices while nobody serves them.

mod bench;
mod calibrate;
mod inspect;

pub use calibrate::{CalibrateError, CalibrateOptions, calibrate, describe, keep};
pub use inspect::{CacheFacts, HomeFacts, Inspected, PartitionFacts, inspect};

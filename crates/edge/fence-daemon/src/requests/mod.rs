//! Requests from the moment when a front end hands them in until they are done: the fence decides, devices act.

pub(crate) mod asked;
mod core;
mod flight;
mod notes;
mod table;

pub(crate) use self::core::Devices;
pub use self::core::{Core, Full};

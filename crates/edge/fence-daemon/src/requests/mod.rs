//! Requests from the moment when a front end hands them in until they are done: the fence decides, devices act.

pub(crate) mod core;
mod flight;
mod table;

pub(crate) use self::core::Devices;
pub use self::core::{Core, Full};

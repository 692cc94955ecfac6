//! A world in virtual time for the fence: models of disks and of clients, and their calibration.
//!
//! A [`World`] joins a [`Fence`](virtbench_fence::Fence), or a scheduler of the caller's, with models of
//! its devices and with clients, runs them for a while, and says what each virtual machine got. It is a
//! pure function of its configuration and seed.

mod calendar;
pub mod calibrate;
pub mod client;
pub mod disk;
mod machines;
mod outcome;
mod world;

pub use outcome::{Events, Outcome, VmOutcome};
pub use world::{Span, World, WorldConfig, WorldError};

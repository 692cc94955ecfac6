//! A world in virtual time for the fence: disk models, clients, and the evaluation of paper 5.
//!
//! A [`World`] joins a [`Fence`](virtbench_fence::Fence), or a scheduler of the caller's, with models of
//! its devices and with clients, runs them for a while, and says what each virtual machine got. It is a
//! pure function of its configuration and seed.

mod calendar;
pub mod calibrate;
pub mod client;
pub mod disk;
pub mod experiment;
mod machines;
mod outcome;
mod world;

pub use outcome::{Events, Outcome, VmFigures};
pub use world::{Span, World, WorldConfig, WorldError};

//! A world in virtual time for the fence.

mod calendar;
pub mod disk;

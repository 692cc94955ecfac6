//! The tests of this crate from outside, one program: it is linked once.

mod adapters;
mod appliances;
mod fence;
mod filesystems;
mod guests;
mod measured;
mod native;
mod workloads;

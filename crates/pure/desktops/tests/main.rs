//! The tests of this crate from outside, one program: it is linked once.

mod days;
mod frame_number;
mod links;
mod marker;

//! The tests of this crate from outside, one program: it is linked once.

mod hostile;
mod inventory;
mod operations;

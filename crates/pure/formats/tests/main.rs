//! The tests of this crate from outside, one program: it is linked once.

mod documented;
mod fio;
mod fio_examples;
mod nasty;

//! The tests of this crate from outside, one program: it is linked once.

mod any_bytes;
mod common;
mod encodings;
mod handshake;

//! The agent: a static program that applies loads where it is told to.
//!
//! The same program runs inside a guest (as init, over virtio-serial) and natively (as a child
//! process, over a socket), so both sides of a comparison execute the same instructions.

pub mod protocol;
pub mod session;

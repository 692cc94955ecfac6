//! What the tests share.

pub mod invent;
pub mod memory_server;
pub mod speech;

//! What the tests share.

pub mod memory_server;
pub mod speech;

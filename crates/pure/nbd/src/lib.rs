//! The NBD protocol, fixed newstyle (the NetworkBlockDevice project's `doc/proto.md`), without I/O of its own.
//!
//! ```text
//! client:  server's bytes -> Handshake, ReplyStream -> what was read, what is over
//! server:  client's bytes -> Connection             -> requests
//!                complete ->                        -> bytes, and which buffers' data goes between them
//! ```
//!
//! The caller moves the bytes and keeps the buffers: payload goes between socket and buffer without passing
//! through here. Nothing that the other side says is believed, memory is bounded, and nothing waits.

pub mod client;
mod outbox;
mod protocol;
pub mod server;

pub use outbox::{Outbox, Piece};
pub use protocol::{Command, DEFAULT_MAX_PAYLOAD_BYTES, ErrorCode, REQUEST_BYTES, encode_request};

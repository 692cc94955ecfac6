//! A client of the NBD protocol, fixed newstyle (the NetworkBlockDevice project's `doc/proto.md`).
//!
//! No crate fits a load generator: `nbd` on crates.io blocks on each request, libnbd's bindings carry a C
//! library under the LGPL. What is needed is small: one handshake, then requests and simple replies.
//! Structured replies are not asked for: a simple reply is 12 bytes shorter for a read, and a server may
//! then not cut a read into chunks.
//!
//! [`Handshake`] and [`ReplyStream`] are pure: bytes in, decisions out. They believe nothing a server
//! says, hold bounded memory, and never wait. `Connection` moves the bytes, under time limits.

mod address;
mod connection;
mod error;
mod handshake;
mod outbox;
mod protocol;
mod reply;
mod source;
mod wire;

pub use address::NbdAddress;
pub(crate) use connection::Connection;
pub use error::NbdError;
pub use handshake::{Export, Handshake, Progress};
pub(crate) use outbox::Outbox;
pub use protocol::{Command, encode_request, errno_of};
pub use reply::{Event, ReplyStream};
pub(crate) use source::NbdSource;

//! The client's side.
//!
//! What a client needs is small: one handshake, then requests and simple replies. Structured replies are not asked for:
//! a simple reply is 12 bytes shorter for a read, and a server may then not cut a read into chunks.

mod error;
mod handshake;
mod reply;

pub use error::ClientError;
pub use handshake::{Export, Handshake, Progress};
pub use reply::{Event, ReplyStream};

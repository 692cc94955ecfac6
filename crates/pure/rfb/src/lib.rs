//! The client's side of the RFB protocol, versions 3.3, 3.7 and 3.8 (RFC 6143), without I/O of its own.
//!
//! ```text
//! server's bytes -> Client -> events, the picture
//!            output <-        keys, pointer, requests for updates
//! ```
//!
//! The caller moves the bytes. Nothing that the server says is believed, memory is bounded, and nothing waits. Security types
//! None and VNC Authentication; encodings ZRLE, Hextile, CopyRect and Raw, which QEMU and TigerVNC speak, and a picture
//! that changes its size.

mod client;
mod error;
mod event;
mod frame;
mod handshake;
mod hextile;
mod input;
mod keys;
mod limits;
mod password;
mod protocol;
mod rectangle;
mod stream;
mod wire;
mod zrle;

pub use client::Client;
pub use error::RfbError;
pub use event::ServerEvent;
pub use frame::{Damage, Frame};
pub use input::{Key, PointerButton};
pub use keys::{Chord, parse_chord, type_text};
pub use limits::Limits;
pub use password::{PASSWORD_BYTES, answer};
pub use rectangle::Rectangle;

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
mod frame;
mod handshake;
mod hextile;
mod input;
mod protocol;
mod rectangle;
mod stream;
mod zrle;

pub use client::Client;
pub use frame::{Damage, Frame, ServerEvent};
pub use handshake::{PASSWORD_BYTES, answer};
pub use input::{Chord, Key, PointerButton, parse_chord, type_text};
pub use protocol::{Limits, RfbError};
pub use rectangle::Rectangle;

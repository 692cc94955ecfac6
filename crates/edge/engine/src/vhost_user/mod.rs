//! A vhost-user-blk server that a load is applied to, through the `blkio` crate.
//!
//! The crate waits without limit for a server's answers and believes what it says, so each exchange of
//! messages runs on a thread of its own, which is left behind when the time limit passes or the crate
//! panics. The rings themselves are memory shared with the server: it is trusted with them, as any
//! vhost-user server is.

mod device;
mod source;

pub(crate) use device::Device;
pub use device::VhostUserError;
pub(crate) use source::{VhostUserSource, ring_note};

//! The agent: a static program that applies loads where it is told to.
//!
//! The same program runs inside a guest (as init, over virtio-serial) and natively (as a child
//! process, over a socket), so both sides of a comparison execute the same instructions.

mod clock;
mod greeting;
mod guest;
pub mod protocol;
mod session;

pub use clock::now_ns;
pub use greeting::greeting;
pub use guest::{MODULE_LIST, run_as_init};
pub use session::serve;

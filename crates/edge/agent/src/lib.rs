//! The agent: a static program that applies loads and runs workloads where it is told to.
//!
//! The same program runs inside a guest (as init, over virtio-serial) and natively (as a child
//! process, over a socket), so both sides of a comparison execute the same instructions.

mod greeting;
mod guest;
mod job;
pub mod protocol;
mod session;

pub use greeting::greeting;
pub use guest::{MODULE_LIST, run_as_init};
pub use session::serve;
/// The agent's clock, which is also the engine's.
pub use virtbench_engine::monotonic_ns as now_ns;

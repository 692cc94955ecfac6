//! The agent: a static program that applies loads and runs workloads where it is told to.
//!
//! The same program runs inside a guest (as init, over virtio-serial), natively (as a child process, over a socket)
//! and on other machines (over ssh), so all sides of a comparison execute the same instructions.

mod alone;
mod appliance;
mod appliance_desk;
mod block_device;
mod console;
mod dhcp;
mod enclosed;
pub mod enclosure;
mod greeting;
mod guest;
mod heard;
pub mod interface;
mod job;
mod measured_stream;
mod network;
mod path_cost;
pub mod protocol;
mod remote;
mod serial_link;
mod session;
mod stored_file;
mod work_folder;

pub use alone::run_alone;
pub use console::Console;
pub use greeting::greeting;
pub use guest::{HERE, LINE, MODULE_LIST, STAY, WATCH, run_as_init};
pub use path_cost::measure_path_cost;
pub use remote::{Role, run_remotely};
pub use serial_link::carry_as_host;
pub use session::{Accounts, serve};
/// The agent's clock, which is also the engine's.
pub use virtbench_engine::monotonic_ns as now_ns;

//! The agent: a static program that applies loads and runs workloads where it is told to.
//!
//! The same program runs inside a guest (as init, over virtio-serial), natively (as a child process, over a socket)
//! and on other machines (over ssh), so all sides of a comparison execute the same instructions. On Windows it is the last alone: `windows/` has
//! what differs there, and refuses what is of Linux.

#[cfg(unix)]
mod alone;
#[cfg(unix)]
mod appliance;
#[cfg(unix)]
mod appliance_desk;
#[cfg(windows)]
#[path = "windows/appliance_desk.rs"]
mod appliance_desk;
#[cfg(unix)]
mod block_device;
#[cfg(windows)]
#[path = "windows/block_device.rs"]
mod block_device;
#[cfg(unix)]
mod console;
#[cfg(unix)]
mod departure;
#[cfg(windows)]
#[path = "windows/departure.rs"]
mod departure;
#[cfg(unix)]
mod dhcp;
#[cfg(unix)]
mod enclosed;
#[cfg(windows)]
#[path = "windows/enclosed.rs"]
mod enclosed;
#[cfg(unix)]
mod enclosing;
#[cfg(windows)]
#[path = "windows/enclosing.rs"]
mod enclosing;
#[cfg(unix)]
pub mod enclosure;
#[cfg(unix)]
mod folder_lock;
#[cfg(windows)]
#[path = "windows/folder_lock.rs"]
mod folder_lock;
#[cfg(unix)]
mod guest;
#[cfg(unix)]
pub mod interface;
#[cfg(windows)]
#[path = "windows/interface.rs"]
mod interface;
mod job;
mod network;
mod path_cost;
pub mod protocol;
mod remote;
#[cfg(unix)]
mod serial_link;
mod session;
#[cfg(windows)]
#[path = "windows/session_words.rs"]
mod session_words;
#[cfg(unix)]
mod stored_file;
mod work_folder;

#[cfg(unix)]
pub use alone::run_alone;
#[cfg(unix)]
pub use console::Console;
#[cfg(unix)]
pub use guest::{HERE, LINE, MODULE_LIST, STAY, WATCH, run_as_init};
pub use path_cost::{PATH_FLOW, measure_path_cost};
pub use remote::{Role, run_remotely};
#[cfg(unix)]
pub use serial_link::carry_as_host;
pub use session::{Accounts, greeting, serve};
#[cfg(windows)]
pub use session_words::run_session;
/// The agent's clock, which is also the engine's.
pub use virtbench_engine::monotonic_ns as now_ns;
#[cfg(unix)]
pub use virtbench_workloads::WITHOUT_VDSO;

//! What of a machine a process gets for itself: a share of memory and processors, files as disks, a network.

mod bridge_port;
mod control_group;
mod limits;
mod loop_device;
mod own_network;
mod user_namespace;

pub(crate) use bridge_port::{INTERFACE, check_bridge, join_bridge};
pub use control_group::{ControlGroup, GroupError, Hierarchy, PROCESSES};
pub use limits::{Limits, processors_in_turn, usable_processors};
pub use loop_device::{LoopCache, LoopDevice, LoopError};
pub use own_network::OwnNetwork;
pub use user_namespace::allow_own_networks;

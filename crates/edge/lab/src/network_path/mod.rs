//! A network path between two agents: natively by a pair of Ethernet devices, to a guest, or between two guests.

mod end;
mod path;

pub use path::{EndProcessors, NetworkPath, PathGuest, PathKind, TrafficMeasured, vhost_device};

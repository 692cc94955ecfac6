//! What virtualization costs the network: paths natively, to guests and between guests.

mod experiment;
mod samples;
mod study;

pub use experiment::NetworkOptions;
pub use study::{NetworkStudy, has_vhost, network_machine};

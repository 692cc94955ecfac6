//! What virtualization costs the network: paths natively, to guests and between guests.

mod samples;
mod study;

pub use study::{NetworkStudy, has_vhost, network_machine};

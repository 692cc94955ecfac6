//! Appliances: guests with real software, and the same software natively.
//!
//! An [`ApplianceSpec`] says what runs where. [`RunningAppliance::start`] puts it together; whoever loads it takes the
//! [`Reach`] and the addresses that it gives.

mod domain;
mod error;
mod guest;
mod guest_facts;
mod host_names;
mod limits;
mod mount_order;
mod namespace_cable;
mod native;
mod network;
mod path_cost;
mod running;
mod spec;
mod tiers;

pub use error::ApplianceError;
pub use guest_facts::appliance_guest_facts;
pub use limits::usable_processors;
pub use network::{Network, NetworkNamespace, Reach};
pub use path_cost::measure_path;
pub use running::RunningAppliance;
pub use spec::{ApplianceSpec, GuestPlace, Place};
pub use tiers::TierLinks;

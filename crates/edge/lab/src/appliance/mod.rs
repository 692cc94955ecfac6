//! Appliances: guests with real software, and the same software natively.
//!
//! An [`ApplianceSpec`] says what runs where. [`RunningAppliance::start`] puts it together; its client takes the
//! [`Reach`] and the addresses that it gives.

mod domain;
mod enclosed;
mod error;
mod ethernet_pair;
mod guest;
mod guest_facts;
mod host_names;
mod machine;
mod mount_order;
mod namespace_cable;
mod native;
mod network;
mod packet_port;
mod parts;
mod path_cost;
mod running;
mod spec;
mod tiers;
mod uml;

pub use error::ApplianceError;
pub(crate) use ethernet_pair::make_ethernet_pair;
pub use guest_facts::appliance_guest_facts;
pub use network::{Network, NetworkNamespace, Reach};
pub(crate) use parts::ApplianceParts;
pub use path_cost::measure_path;
pub use running::RunningAppliance;
pub use spec::{ApplianceSpec, GuestPlace, Place, UmlPlace};
pub use tiers::TierLinks;

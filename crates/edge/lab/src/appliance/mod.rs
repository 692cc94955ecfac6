//! Appliances: guests with real software, and the same software natively.
//!
//! An [`ApplianceSpec`] says what runs where. [`RunningAppliance::start`] puts it together; its client takes the
//! [`Reach`] and the addresses that it gives.

mod error;
mod ethernet_pair;
mod machine;
mod network;
mod parts;
mod running;
mod spec;
mod start;
mod tiers;

pub use error::ApplianceError;
pub(crate) use ethernet_pair::make_ethernet_pair;
pub use network::{Network, NetworkNamespace, Reach, measure_path};
pub(crate) use parts::ApplianceParts;
pub use parts::appliance_guest_facts;
pub use running::RunningAppliance;
pub use spec::{ApplianceSpec, GuestPlace, Place, UmlPlace};
pub use tiers::TierLinks;

//! Proxmox VE as a platform, by its API.

mod connect;
mod failure;
mod guest_address;
mod guest_machine;
mod keeper;
mod numbers;
mod open;
mod owned;
mod platform;
mod sweep;

pub use guest_address::ProxmoxGuest;
pub use platform::{OnProxmox, ProxmoxOptions};
pub(crate) use sweep::{remove_dead, runs_on};

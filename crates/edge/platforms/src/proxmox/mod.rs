//! Proxmox VE as a platform, by its API.

mod connect;
mod failure;
mod guest_machine;
mod owned;
mod platform;

pub use guest_machine::ProxmoxGuest;
pub(crate) use owned::{remove_dead, runs_on};
pub use platform::{OnProxmox, ProxmoxOptions};

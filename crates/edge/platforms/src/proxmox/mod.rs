//! Proxmox VE as a platform, by its API.

mod connect;
mod failure;
mod guest_machine;
mod owned;
mod platform;
mod sweep;

pub use guest_machine::ProxmoxGuest;
pub use platform::{OnProxmox, ProxmoxOptions};
pub(crate) use sweep::{remove_dead, runs_on};

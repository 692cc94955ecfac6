//! vSphere as a platform: a vCenter or a host by its VIM API.

mod connect;
mod done;
mod owned;
mod platform;
mod sweep;

pub use connect::VsphereOptions;
pub use platform::OnVsphere;
pub(crate) use sweep::{remove_dead, runs_on};

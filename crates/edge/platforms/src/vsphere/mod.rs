//! vSphere as a platform: a vCenter or a host by its VIM API.

mod connect;
mod done;
mod owned;
mod platform;

pub use connect::VsphereOptions;
pub(crate) use owned::{remove_dead, runs_on};
pub use platform::OnVsphere;

//! OpenStack as a platform, by its APIs.

mod connect;
mod guest_machine;
mod owned;
mod platform;
mod sweep;

pub use guest_machine::OpenStackGuest;
pub use platform::OnOpenStack;
pub(crate) use sweep::{remove_dead, runs_on};

//! OpenStack as a platform, by its APIs.

mod connect;
mod failure;
mod guest_address;
mod guest_machine;
mod keeper;
mod lacks;
mod owned;
mod platform;
mod sweep;

pub use guest_address::OpenStackGuest;
pub use platform::OnOpenStack;
pub(crate) use sweep::{remove_dead, runs_on};

//! OpenStack as a platform, by its APIs.

mod connect;
mod guest_machine;
mod owned;
mod platform;

pub use guest_machine::OpenStackGuest;
pub(crate) use owned::{remove_dead, runs_on};
pub use platform::OnOpenStack;

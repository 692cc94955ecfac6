//! Guests, found from what they are to be made of before anything is measured.
//!
//! ```text
//! options -> platform (KVM, User Mode Linux or emulation) -> load (loads and workloads) | appliances
//! ```

mod appliances;
mod load;
mod options;

pub use appliances::{ApplianceGuests, GuestChoice};
pub(crate) use load::ONLY_GUEST;
pub use load::{Extras, Guests};
pub use options::{GuestOptions, GuestsError, WantedAccelerator};

//! Guests, found from what they are to be made of before anything is measured.
//!
//! ```text
//! options -> platform (KVM, User Mode Linux or emulation) -> load (loads and workloads) | appliances
//! ```

mod appliances;
mod choice;
mod load;
mod options;
mod platform;

pub use appliances::ApplianceGuests;
pub use choice::GuestChoice;
pub(crate) use load::ONLY_GUEST;
pub use load::{Extras, Guests};
pub use options::{GuestOptions, GuestsError, WantedAccelerator};

//! The study of desktops: users of more and more of them at once ([Platform 2014], sections III.D and IV.D).

mod appliance;
mod experiment;
mod pictures;
mod run;
mod source;
mod standing;

pub use appliance::DesktopAppliance;
pub use experiment::{DesktopsOptions, DesktopsPlace, find_day};
pub use run::DesktopsStudy;
pub use source::{DesktopSource, ExistingDesktops};

//! The study of desktops: users of more and more of them at once ([Platform 2014], sections III.D and IV.D).

mod experiment;
mod run;
mod source;
mod standing;

pub use experiment::{DesktopsOptions, DesktopsPlace, find_day};
pub use run::DesktopsStudy;
pub use source::{DesktopAppliance, DesktopSource, ExistingDesktops};

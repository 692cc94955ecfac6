//! The study of an application: an appliance under a client of the user's, natively and in VMs, alone and beside neighbours
//! ([Platform 2014], section III.A; [VirtualFence 2013], section 4).

mod client;
mod file;
mod load;
mod members;
mod run;
#[cfg(test)]
mod run_tests;
mod schedule;

pub(crate) use client::{Client, client_words, explained};
pub use file::{ApplicationFile, ApplicationFileError, SideKind, TierFile};
pub use load::ApplianceLoad;
pub(crate) use load::{DataDisks, DataPlace};
pub use members::LoadedAppliances;
pub use run::{ApplicationOptions, ApplicationStudy, run_application};
pub use schedule::{ApplicationFailure, ApplicationSides};

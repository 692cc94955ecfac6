//! One platform, domain by domain: the other studies, each run as its own command is, and a score over them.

mod experiment;
mod part;
mod study;

pub use experiment::{PlatformOptions, PlatformProfile};
pub use study::PlatformStudy;

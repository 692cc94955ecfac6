//! One platform, domain by domain: the other studies, each run as its own command is, and a score over them.

mod configuration;
mod experiment;
mod part;
mod profile;
mod study;
mod watch;

pub use experiment::PlatformOptions;
pub use profile::PlatformProfile;
pub use study::PlatformStudy;

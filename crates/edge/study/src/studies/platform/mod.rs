//! One platform, domain by domain: the other studies, each run as its own command is, and a score over them.

mod configuration;
mod part;
mod study;
mod watch;

pub use study::PlatformStudy;

//! A hypervisor by libvirt as a platform: persistent domains, whose disks are volumes of a pool.

mod clones;
mod connect;
mod disks;
mod guest;
mod jobs;
mod outage;
mod platform;
mod refusals;
mod states;
mod vm;
mod xml;

pub use connect::{LibvirtOptions, OnUpload};
pub use platform::LibvirtPlatform;
pub(crate) use refusals::failure;

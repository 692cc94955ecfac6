//! A hypervisor by libvirt as a platform: persistent domains, whose disks are volumes of a pool.

mod clones;
mod connect;
mod guest;
mod outage;
mod platform;
mod vm;
mod xml;

pub use connect::{LibvirtOptions, OnUpload};
pub(crate) use guest::failure;
pub use platform::LibvirtPlatform;

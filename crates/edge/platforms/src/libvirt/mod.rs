//! A hypervisor by libvirt as a platform: persistent domains, whose disks are volumes of a pool.

mod connect;
mod guest;
mod labels;
mod platform;
mod refusals;
mod states;
mod sweep;
mod vm;
mod xml;

pub use connect::{LibvirtOptions, OnUpload};
pub use platform::LibvirtPlatform;

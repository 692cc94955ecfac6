//! Guests on a hypervisor that the user already runs, reached by libvirt.
//!
//! ```text
//! connect           libvirt's own URI; what a killed run left there is swept by its label
//! upload            kernel, initramfs and a disk, as volumes of the pool that is named
//! start             a transient domain, its processors paused, that ends with the connection
//! open              its console and the agent's channel, as streams of libvirt's
//! resume            the agent greets
//! destroy, delete   in the end, whatever happened before
//! ```

mod address;
mod appliances;
mod bare;
mod disk;
mod domain_xml;
mod environment;
mod host;
mod label;
mod machine;
mod network;
mod prepared;
mod storage;
mod sweep;

pub use address::{LibvirtAddress, LibvirtAddressError};
pub(crate) use appliances::DomainAppliance;
pub use appliances::LibvirtAppliances;
pub use bare::{BootFiles, boot_files_for, connect_with_pool};
pub use disk::{NotByLibvirt, check_disk};
pub use environment::{Libvirt, LibvirtGuest};
pub use label::{Label, Owner};
pub use network::DomainNetwork;
pub use storage::Noise;

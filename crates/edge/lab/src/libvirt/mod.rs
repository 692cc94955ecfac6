//! Guests on a hypervisor that the user already runs, reached by libvirt.
//!
//! ```text
//! connect           libvirt's own URI; what killed runs have left there is removed, by its marks
//! upload            kernel, initramfs and a disk, as volumes of the pool that is named
//! start             a transient domain, its processors paused, that ends with the connection
//! open              its console and the agent's channel, as streams of libvirt's
//! resume            the agent greets
//! destroy, delete   in the end, whatever happened before
//! ```

mod address;
mod appliances;
mod domain_xml;
mod environment;
mod host;
mod machine;
mod made;
mod prepared;
mod sign;
mod storage;
mod sweep;

pub use address::{LibvirtAddress, LibvirtAddressError};
pub(crate) use appliances::DomainAppliance;
pub use appliances::LibvirtAppliances;
pub use domain_xml::{DomainNetwork, NotByLibvirt, check_disk};
pub use environment::{Libvirt, LibvirtGuest};
pub use made::{LeftRun, MADE_NAMESPACE, MADE_PREFIX, Made, MarkedThing, Purpose, new_uuid};
pub use prepared::{BootFiles, boot_files_for, connect_to, connect_with_pool};
pub use sign::{BEAT, Beat, Label, SILENT, Sign, Standing, now_s};
pub use storage::{Noise, check_free, folder_of};
pub use sweep::{Keeper, SweepOf, remove_made, runs_on};

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
mod bare;
mod beat;
mod disk;
mod domain_xml;
mod environment;
mod host;
mod keeper;
mod label;
mod left_run;
mod machine;
mod made;
mod network;
mod paused;
mod prepared;
mod sign;
mod storage;
mod sweep;

pub use address::{LibvirtAddress, LibvirtAddressError};
pub(crate) use appliances::DomainAppliance;
pub use appliances::LibvirtAppliances;
pub use bare::{BootFiles, boot_files_for, connect_to, connect_with_pool};
pub use beat::Beat;
pub use disk::{NotByLibvirt, check_disk};
pub use environment::{Libvirt, LibvirtGuest};
pub use keeper::Keeper;
pub use label::Label;
pub use left_run::{LeftRun, MarkedThing};
pub use made::{MADE_NAMESPACE, MADE_PREFIX, Made, Purpose, new_uuid};
pub use network::DomainNetwork;
pub use sign::{BEAT, SILENT, Sign, Standing, now_s};
pub use storage::{Noise, check_free, folder_of};
pub use sweep::{SweepOf, remove_made, runs_on};

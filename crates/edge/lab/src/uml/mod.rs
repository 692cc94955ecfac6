//! Guests of User Mode Linux: a Linux kernel as a process of this host. Their user code runs on the processor itself; their system calls,
//! page faults and interrupts are handled by that process, at a price.
//!
//! ```text
//! UmlKernel::find -> UmlImage (initramfs with the agent) -> UmlGuest::boot -> Uml, an Environment
//! ```

mod disk;
mod disk_servers;
mod environment;
mod folder;
mod guest;
mod interface;
mod kernel;
mod memory;
mod probe;
mod processor;

pub use disk::{UmlDisk, UmlDiskKind};
pub use environment::Uml;
pub use guest::{UmlConfig, UmlGuest};
pub(crate) use interface::INTERFACE as UML_INTERFACE;
pub use interface::UmlInterface;
pub use kernel::{UmlError, UmlImage, UmlKernel};
pub use probe::probe_uml;
pub use processor::uml_processor;

//! Guests of User Mode Linux: a Linux kernel as a process of this host. Their user code runs on the processor itself; their system calls,
//! page faults and interrupts are handled by that process, at a price.
//!
//! ```text
//! UmlKernel::find -> UmlImage (initramfs with the agent) -> UmlGuest::boot -> Uml, an Environment
//! ```

mod disk;
mod environment;
mod guest;
mod kernel;
mod memory;

pub use disk::{UmlDisk, UmlDiskKind};
pub use environment::{Uml, probe_uml};
pub(crate) use guest::INTERFACE as UML_INTERFACE;
pub use guest::{UmlConfig, UmlGuest, UmlInterface, uml_processor};
pub use kernel::{UmlError, UmlImage, UmlKernel};

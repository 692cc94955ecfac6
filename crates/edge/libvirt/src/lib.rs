//! Hypervisors by libvirt.
//!
//! `libvirt.so.0` is loaded when it is first used: a program with this crate in it runs where there is no libvirt. The
//! functions are declared by hand in one file; all that is unsafe is in the folder of that file. The rest gives each object a type, and each call a
//! time limit: a call that is not back in time is left to a thread of its own.
//!
//! ```no_run
//! use virtbench_libvirt::{Hypervisor, StartFlags};
//!
//! let hypervisor = Hypervisor::open("qemu:///system")?;
//! let domain = hypervisor.start("<domain type='qemu'>...</domain>", StartFlags::PAUSED)?;
//! let agent = domain.open_channel("virtbench.0")?; // a socket
//! domain.resume()?;
//! # Ok::<(), virtbench_libvirt::LibvirtError>(())
//! ```

mod binding;
mod connection;
mod domain;
mod error;
mod events;
mod hypervisor;
mod persistent;
mod pump;
mod storage;

pub use binding::NodeInfo;
pub use domain::{Domain, StartFlags};
pub use error::{ErrorKind, LibvirtError};
pub use events::{DomainChange, DomainEvents, WatchedDomain};
pub use hypervisor::Hypervisor;
pub use pump::close_stream;
pub use storage::{OnUpload, Pool, PoolInfo, Volume};

/// Whether libvirt's library is here.
///
/// # Errors
/// It cannot be loaded.
pub fn load() -> Result<(), LibvirtError> {
    connection::binding().map(drop)
}

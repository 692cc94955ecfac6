//! Environments as a user names them: `native:`, `qemu:`, `ssh://`, `libvirt+URI`, or a name from `virtbench.toml`.

mod cluster;
mod made;
mod names;
mod uri;

#[cfg(feature = "full")]
pub(crate) use cluster::{ClusterGuest, is_cluster};
pub use made::{FoundEnvironments, MadeEnvironments};
pub use names::{EnvironmentNames, NamesError, find_environments, find_homes};
pub(crate) use names::{homes, housed, in_words};
pub use uri::{EnvironmentUri, LibvirtUri, NamedEnvironment, QemuUri, UriError};

//! Environments as a user names them: `native:`, `qemu:`, `ssh://`, or a name from `virtbench.toml`.

mod names;
mod uri;

pub use names::{EnvironmentNames, NamesError};
pub use uri::{EnvironmentUri, NamedEnvironment, QemuUri, UriError};

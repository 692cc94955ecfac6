//! Environments as a user names them: `native:`, `qemu:`, `ssh://`, or a name from `virtbench.toml`.

mod made;
mod names;
mod uri;

pub use made::{FoundEnvironments, MadeEnvironments};
pub use names::{EnvironmentNames, NamesError};
pub use uri::{EnvironmentUri, NamedEnvironment, QemuUri, UriError};

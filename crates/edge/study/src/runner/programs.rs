//! Programs of this host that a user names.

use std::path::Path;

/// Whether a program can be started by this name.
#[must_use]
pub fn is_program(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if name.contains('/') {
        Path::new(name).is_file()
    } else {
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    }
}

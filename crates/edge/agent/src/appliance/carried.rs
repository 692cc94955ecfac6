//! The agent's own program within the root, for services that are modes of it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::inside::inside;

/// Where recipes name it.
const PLACE: &str = "/run/virtbench/agent";

/// Puts the agent's program into the root if a service's command is it, and it is not there yet.
///
/// # Errors
/// In words.
pub(crate) fn carry(root: &Path, command: &[String]) -> Result<(), String> {
    if command.first().is_none_or(|program| program != PLACE) {
        return Ok(());
    }
    let put = || -> io::Result<()> {
        // Outside: the root's /proc does not show this process.
        let program = fs::read("/proc/self/exe")?;
        inside(root, || {
            if fs::exists(PLACE)? {
                return Ok(());
            }
            fs::create_dir_all("/run/virtbench")?;
            fs::write(PLACE, &program)?;
            fs::set_permissions(PLACE, fs::Permissions::from_mode(0o755))
        })?
    };
    put().map_err(|error| format!("{PLACE} cannot be put there: {error}"))
}

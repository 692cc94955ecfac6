//! What is left of a file system.

use std::io;
use std::path::Path;

use rustix::fs::statvfs;

/// Bytes that an ordinary user may still write to the file system of a file or folder, which is there.
///
/// # Errors
/// It cannot be looked at.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let facts = statvfs(path)?;
    Ok(facts.f_bavail.saturating_mul(facts.f_frsize))
}

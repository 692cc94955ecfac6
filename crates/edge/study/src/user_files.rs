//! What users keep on this machine: files that they write, and the folders where those are looked for.

use std::fs;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The text of a file that somebody wrote.
///
/// # Errors
/// It cannot be read, or is too large for that; in words.
pub fn read_user_file(path: &Path) -> Result<String, String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    fs::read_to_string(path).map_err(|error| error.to_string())
}

/// The folder of the user's that `variable` of the XDG Base Directory Specification names, else the one at `below_home`; nothing
/// where neither is known.
#[must_use]
pub fn user_folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(variable).or_else(|| set("HOME").map(|home| home.join(below_home)))
}

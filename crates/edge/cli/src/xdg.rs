//! The user's folders, as the XDG Base Directory Specification has them.

use std::path::PathBuf;

/// The folder that `variable` names, else the one at `below_home` in the user's home; nothing where neither is known.
pub fn folder(variable: &str, below_home: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set(variable).or_else(|| set("HOME").map(|home| home.join(below_home)))
}

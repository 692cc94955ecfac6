//! A control group of version 2 below the agent's own, with all that is made in it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What it is called. The agent's own group, which natively the controller has made for it alone, tells it from others.
const NAME: &str = "init";

/// A group that is there until it is removed, or until the controller removes the one above it.
pub(crate) struct Group(PathBuf);

impl Group {
    /// Makes one in the hierarchy that is mounted at `root`.
    ///
    /// # Errors
    /// It cannot be made.
    pub(crate) fn make(root: &Path) -> io::Result<Self> {
        let path = root.join(own(&fs::read_to_string("/proc/self/cgroup")?)).join(NAME);
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Removes it with all that is in it; what still has processes stays.
    pub(crate) fn remove(&self) {
        remove(&self.0);
    }
}

/// Whether a process is in the group at `path` or below it. There is none where there is no such group.
pub(crate) fn is_populated(path: &Path) -> bool {
    let events = fs::read_to_string(path.join("cgroup.events"));
    events.is_ok_and(|text| text.lines().any(|line| line == "populated 1"))
}

/// The path of a process's own group of version 2, relative, of what its `/proc/PID/cgroup` says.
fn own(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or("")
}

fn remove(path: &Path) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove(&entry.path());
        }
    }
    let _ = fs::remove_dir(path);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_own_group_is_the_one_of_version_2() {
        assert_eq!(own("4:memory:/a\n0::/user.slice/b\n"), "user.slice/b");
        assert_eq!((own("0::/\n"), own("4:memory:/a\n")), ("", ""));
    }
}

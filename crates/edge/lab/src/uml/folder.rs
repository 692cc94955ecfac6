//! The folder that the kernel of a guest of User Mode Linux needs while it starts: for its console's socket, and those of its disks.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;
use virtbench_mark::{Mark, RunId, mark_folder, remove_marked_folder};

/// How names of such folders begin.
const PREFIX: &str = "virtbench-uml-";
/// What its mark is for.
const PURPOSE: &str = "uml-guest";

/// Makes one in `parent`, and removes what was left there by virtbench when it was killed while a guest started.
pub(super) fn guest_folder(parent: &Path) -> io::Result<TempDir> {
    sweep(parent)?;
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
    mark_folder(folder.path(), &Mark::new(RunId::new_random(), PURPOSE)).map_err(io::Error::other)?;
    Ok(folder)
}

/// A folder that another user left stays.
fn sweep(parent: &Path) -> io::Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            let removed = remove_marked_folder(&entry.path());
            tracing::debug!(folder = %entry.path().display(), ?removed, "a folder of a guest is there already");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use virtbench_mark::MARK_FILE;

    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_strangers_stay() {
        let parent = tempfile::tempdir().unwrap();
        let used = guest_folder(parent.path()).unwrap();
        let (left, stranger) =
            (parent.path().join("virtbench-uml-left"), parent.path().join("virtbench-uml-x"));
        fs::create_dir(&left).unwrap();
        fs::create_dir(&stranger).unwrap();
        let mark = fs::read_to_string(used.path().join(MARK_FILE)).unwrap();
        // Its maker has ended and was waited for.
        let mut ended = Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let own = format!("process={} ", std::process::id());
        assert!(mark.contains(&own), "{mark}");
        fs::write(left.join(MARK_FILE), mark.replace(&own, &format!("process={} ", ended.id()))).unwrap();
        let second = guest_folder(parent.path()).unwrap();
        assert!(!left.exists() && stranger.exists() && used.path().exists() && second.path().exists());
    }
}

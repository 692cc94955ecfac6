//! Folders for what processes need while they start: sockets that they connect to, disk images that they read. Without them a kill later on
//! leaves nothing; what a kill at the start leaves, the next start removes.

use std::path::Path;
use std::{fs, io};

use tempfile::TempDir;
use virtbench_mark::{Mark, RunId, mark_folder, remove_marked_folder};

/// Makes one in `parent`, for a program of this name.
///
/// # Errors
/// It cannot be made, or `parent` not be read.
pub(crate) fn start_folder(parent: &Path, program: &str) -> io::Result<TempDir> {
    let prefix = format!("virtbench-{program}-");
    sweep(parent, &prefix)?;
    let folder = tempfile::Builder::new().prefix(&prefix).tempdir_in(parent)?;
    let mark = Mark::new(RunId::new_random(), &format!("{program}-start"));
    mark_folder(folder.path(), &mark).map_err(io::Error::other)?;
    Ok(folder)
}

/// Removes what was left there by virtbench when it was killed. A folder that another user left stays.
fn sweep(parent: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(parent)?.flatten() {
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            let removed = remove_marked_folder(&entry.path());
            tracing::debug!(folder = %entry.path().display(), ?removed, "a folder of a start is there already");
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
        let used = start_folder(parent.path(), "uml").unwrap();
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
        let second = start_folder(parent.path(), "uml").unwrap();
        assert!(!left.exists() && stranger.exists() && used.path().exists() && second.path().exists());
    }
}

//! Things that exist before they can be marked, such as control groups: the folder that will hold them carries their mark until
//! they carry it themselves.

use std::io;
use std::path::Path;

use rustix::fs::{XattrFlags, lgetxattr, listxattr, lsetxattr, removexattr};

use crate::mark::Mark;

/// What the attributes begin with; the name of the thing follows.
const ATTRIBUTE: &str = "user.virtbench.making.";

/// No mark is longer, in bytes.
const LONGEST: usize = 1024;

/// The names of all attributes of a folder are not longer, in bytes: the kernel's limit.
const LONGEST_LIST: usize = 65_536;

/// The mark of a thing that is being made in a folder. It goes from the folder when this does.
#[derive(Debug)]
pub struct Announced<'a> {
    folder: &'a Path,
    name: &'a str,
}

impl<'a> Announced<'a> {
    /// Writes it. A folder that takes no such mark gets none: what a kill leaves there is nobody's.
    #[must_use]
    pub fn new(folder: &'a Path, name: &'a str, mark: &Mark) -> Self {
        let _ = lsetxattr(folder, attribute(name), mark.to_string().as_bytes(), XattrFlags::empty());
        Self { folder, name }
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        let _ = withdraw(self.folder, self.name);
    }
}

fn attribute(name: &str) -> String {
    format!("{ATTRIBUTE}{name}")
}

fn withdraw(folder: &Path, name: &str) -> io::Result<()> {
    Ok(removexattr(folder, attribute(name))?)
}

/// Names of the things that a folder says are being made.
fn names(folder: &Path) -> Vec<String> {
    let mut list = vec![0; LONGEST_LIST];
    let length = listxattr(folder, &mut list[..]).unwrap_or(0);
    let all = list.get(..length).unwrap_or_default().split(|byte| *byte == 0);
    all.filter_map(|name| str::from_utf8(name).ok()?.strip_prefix(ATTRIBUTE).map(str::to_owned)).collect()
}

/// Has `remove` remove what makers that have ended had begun to make in a folder on this machine. What it cannot remove stays
/// announced.
pub fn remove_announced(folder: &Path, mut remove: impl FnMut(&Path) -> io::Result<()>) {
    for name in names(folder) {
        let mut value = [0; LONGEST];
        let length = lgetxattr(folder, attribute(&name), &mut value).unwrap_or(0);
        let mark = value.get(..length).and_then(|value| Mark::parse(str::from_utf8(value).ok()?));
        let is_left = mark.is_some_and(|mark| mark.owner_here() == crate::Owner::Gone);
        if is_left && !name.contains('/') && remove(&folder.join(&name)).is_ok() {
            let _ = withdraw(folder, &name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::mark::RunId;

    #[test]
    fn what_an_ended_maker_had_begun_is_removed_and_what_a_living_one_makes_is_not() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let lives = Mark::new(RunId::new_random(), "group");
        let mut ended = lives.clone();
        ended.maker.began += 1;
        for (name, mark) in [("ended", &ended), ("never-made", &ended), ("lives", &lives), ("done", &lives)] {
            std::mem::forget(Announced::new(folder.path(), name, mark));
        }
        drop(Announced { folder: folder.path(), name: "done" });
        for name in ["ended", "lives", "done", "stranger"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let mut removed = Vec::new();
        remove_announced(folder.path(), |path| {
            removed.push(path.to_owned());
            fs::remove_dir(path).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
        });
        removed.sort();
        assert_eq!(removed, ["ended", "never-made"].map(|name| folder.path().join(name)));
        assert_eq!(names(folder.path()), ["lives"]);
        remove_announced(folder.path(), |_| panic!("a living maker's"));
    }

    #[test]
    fn what_cannot_be_removed_stays_announced() {
        let folder = tempfile::tempdir_in("/var/tmp").unwrap();
        let mut ended = Mark::new(RunId::new_random(), "group");
        ended.maker.began += 1;
        std::mem::forget(Announced::new(folder.path(), "busy", &ended));
        remove_announced(folder.path(), |_| Err(io::ErrorKind::ResourceBusy.into()));
        assert_eq!(names(folder.path()), ["busy"]);
    }
}

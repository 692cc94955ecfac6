//! Names of a loadfile, as a client's paths.

use std::fs;
use std::path::{Path, PathBuf};

/// The client whose requests were recorded.
const RECORDED: &str = "client1";

/// Turns names into paths below the folder, with the client's own name in the place of the recorded one.
#[derive(Debug)]
pub(crate) struct Names {
    root: PathBuf,
    client: String,
}

impl Names {
    /// The names of client number `number`, counted from 0.
    pub(crate) fn new(root: &Path, number: u32) -> Self {
        Self { root: root.to_owned(), client: format!("client{}", number + 1) }
    }

    /// The path of a name.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.join(name.replace(RECORDED, &self.client).trim_start_matches('/'))
    }

    /// The client's own folder.
    pub(crate) fn own(&self) -> PathBuf {
        self.root.join("clients").join(&self.client)
    }
}

/// What a file server does to find a name that may be written in other letters: it looks it up, and
/// where it is not there goes through the whole folder. Says whether it is there as written.
pub(crate) fn resolve(path: &Path) -> bool {
    if fs::metadata(path).is_ok() {
        return true;
    }
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else { return false };
    if let Ok(entries) = fs::read_dir(folder) {
        let same = |entry: &fs::DirEntry| entry.file_name().eq_ignore_ascii_case(name);
        // What is found is not used: dbench measures the way there.
        let _ = entries.flatten().find(same);
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_has_names_of_its_own() {
        let names = Names::new(Path::new("/d"), 6);
        assert_eq!(names.path("/clients/client1/~dmtmp/a.doc"), Path::new("/d/clients/client7/~dmtmp/a.doc"));
        assert_eq!(names.own(), Path::new("/d/clients/client7"));
    }
}

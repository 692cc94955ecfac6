//! Files and folders that one process holds against others.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, flock};

/// A file or folder that nobody else can hold meanwhile; a kill lets go of it too. QEMU's own locks are of another kind and
/// do not meet this one.
#[derive(Debug)]
pub struct Held(File);

impl Held {
    /// Holds what is at `path`; nothing if somebody does already.
    ///
    /// # Errors
    /// It cannot be opened.
    pub fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        Ok(flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok().then_some(Self(file)))
    }

    /// Lets others have it. Closing would not do: a process that another thread is just starting has the file open too,
    /// until it begins.
    pub fn let_go(&self) {
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.let_go();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_go_can_be_held_at_once_though_a_child_has_it_open() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let held = Held::take(file.path()).unwrap().unwrap();
        assert!(Held::take(file.path()).unwrap().is_none());
        let inherited = held.0.try_clone().unwrap();
        drop(held);
        assert!(Held::take(file.path()).unwrap().is_some());
        drop(inherited);
    }
}

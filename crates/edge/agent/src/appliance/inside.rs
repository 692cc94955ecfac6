//! Doing something inside a root file system.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use rustix::process::{chdir, chroot};
use rustix::thread::{ThreadNameSpaceType, UnshareFlags, move_into_thread_name_spaces, unshare_unsafe};

/// Where an appliance's programs are started: in its root, or, where the root's own init runs, beside that.
#[derive(Debug, Clone)]
pub(crate) struct Interior {
    root: PathBuf,
    init: Option<Arc<OwnedFd>>,
}

impl Interior {
    /// A root without an init.
    pub(crate) fn of_root(root: PathBuf) -> Self {
        Self { root, init: None }
    }

    /// Within the namespaces of this process, whose root folder it is.
    pub(crate) fn of_init(root: PathBuf, process: OwnedFd) -> Self {
        Self { root, init: Some(Arc::new(process)) }
    }

    /// Does it there, as [`inside`] does.
    ///
    /// # Errors
    /// Root is needed, or the init has ended.
    pub(crate) fn inside<T: Send>(&self, act: impl FnOnce() -> T + Send) -> io::Result<T> {
        let Some(init) = &self.init else { return inside(&self.root, act) };
        let enter = || -> io::Result<()> {
            // SAFETY: as in `inside`.
            unsafe { unshare_unsafe(UnshareFlags::FS) }?;
            // What this thread starts is a process of the init's. Its root folder is the one of the mounts that it enters.
            let kinds = ThreadNameSpaceType::MOUNT
                | ThreadNameSpaceType::PROCESS_ID
                | ThreadNameSpaceType::CONTROL_GROUP;
            Ok(move_into_thread_name_spaces(init.as_fd(), kinds)?)
        };
        on_own_thread(enter, act)
    }
}

/// Does it where `root` is the root of every path, of processes that are started there too. Nothing outside can be reached by a
/// link inside.
///
/// # Errors
/// Root is needed.
pub(crate) fn inside<T: Send>(root: &Path, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    let enter = || -> io::Result<()> {
        // SAFETY: this thread has been made for what follows; a root folder of its own closes no descriptor and shares no memory.
        unsafe { unshare_unsafe(UnshareFlags::FS) }?;
        chroot(root)?;
        Ok(chdir("/")?)
    };
    on_own_thread(enter, act)
}

/// Does both, one after the other, on a thread that ends then.
pub(crate) fn on_own_thread<T: Send>(
    enter: impl FnOnce() -> io::Result<()> + Send,
    act: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = scope.spawn(|| enter().map(|()| act()));
        thread.join().map_err(|_| io::Error::other("a thread of the agent panicked"))?
    })
}

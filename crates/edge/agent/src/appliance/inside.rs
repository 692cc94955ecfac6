//! Doing something inside a root file system.

use std::io;
use std::path::Path;
use std::thread;

use rustix::process::{chdir, chroot};
use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Does it where `root` is the root of every path, of processes that are started there too. Nothing outside can be reached by a
/// link inside.
///
/// # Errors
/// Root is needed.
pub(crate) fn inside<T: Send>(root: &Path, act: impl FnOnce() -> T + Send) -> io::Result<T> {
    let enter = || {
        // SAFETY: this thread has been made for what follows; a root folder of its own closes no descriptor and shares no memory.
        unsafe { unshare_unsafe(UnshareFlags::FS) }?;
        chroot(root)?;
        chdir("/")
    };
    thread::scope(|scope| {
        let thread = scope.spawn(|| enter().map(|()| act()));
        thread.join().map_err(|_| io::Error::other("a thread of the agent panicked"))?.map_err(Into::into)
    })
}

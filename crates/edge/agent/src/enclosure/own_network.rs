//! A network of one's own.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::thread;

use rustix::thread::{LinkNameSpaceType, UnshareFlags, move_into_link_name_space, unshare_unsafe};

use crate::interface::set_up;

/// A network namespace. The kernel takes it away with the last process and descriptor in it, also after a kill.
#[derive(Debug)]
pub struct OwnNetwork(File);

impl OwnNetwork {
    /// Makes one with its loopback.
    ///
    /// # Errors
    /// Root is needed.
    pub fn new() -> io::Result<Self> {
        let make = || {
            // SAFETY: a network namespace of this thread's own closes no descriptor and shares no memory anew.
            unsafe { unshare_unsafe(UnshareFlags::NEWNET) }?;
            set_up("lo")?;
            File::open("/proc/thread-self/ns/net")
        };
        on_own_thread(make)?.map(Self)
    }

    /// Has the calling thread, and threads and processes that it starts from now on, use this network.
    ///
    /// # Errors
    /// Root is needed.
    pub fn enter(&self) -> io::Result<()> {
        Ok(move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))?)
    }

    /// Does something on a thread in this network.
    ///
    /// # Errors
    /// Root is needed.
    pub fn within<T: Send>(&self, act: impl FnOnce() -> T + Send) -> io::Result<T> {
        on_own_thread(|| self.enter().map(|()| act()))?
    }

    /// Where other programs find it while this process has it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// Another descriptor of it.
    ///
    /// # Errors
    /// There are no descriptors left.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        Ok(self.0.try_clone()?.into())
    }
}

fn on_own_thread<T: Send>(act: impl FnOnce() -> T + Send) -> io::Result<T> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().name("network".into()).spawn_scoped(scope, act)?;
        thread.join().map_err(|_| io::Error::other("a thread panicked"))
    })
}

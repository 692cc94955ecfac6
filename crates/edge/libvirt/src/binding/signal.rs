//! How a stream's events reach a thread that waits.

use std::ffi::{c_int, c_void};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

use super::functions::Pointer;

/// Raised by libvirt's thread when something can be done with a stream.
#[derive(Debug)]
pub(crate) struct Signal {
    fd: OwnedFd,
    /// `virStreamEventUpdateCallback`
    update: unsafe extern "C" fn(Pointer, c_int) -> c_int,
}

impl Signal {
    pub(super) fn new(update: unsafe extern "C" fn(Pointer, c_int) -> c_int) -> io::Result<Self> {
        Ok(Self { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?, update })
    }

    /// Lowers it.
    pub(crate) fn clear(&self) {
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// libvirt calls it from its event loop.
pub(super) unsafe extern "C" fn on_event(stream: Pointer, _events: c_int, opaque: *mut c_void) {
    // SAFETY: `opaque` is the signal that `watch` gave away, and lives until `forget` has it.
    let signal = unsafe { &*opaque.cast_const().cast::<Signal>() };
    // Said once; it would be said again and again until somebody has read.
    // SAFETY: the stream is the one that is being told of.
    unsafe { (signal.update)(stream, 0) };
    let _ = rustix::io::write(&signal.fd, &1u64.to_ne_bytes());
}

/// Takes back what libvirt was given for [`on_event`].
pub(super) unsafe extern "C" fn forget(opaque: *mut c_void) {
    // SAFETY: `watch` made it from such a value, and libvirt calls this once.
    drop(unsafe { Arc::from_raw(opaque.cast_const().cast::<Signal>()) });
}

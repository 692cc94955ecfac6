//! How a daemon's process ends, and by what it does not.

use std::io;
use std::os::fd::OwnedFd;
use std::process::Child;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

/// A daemon's process, seen from the one that began it: never another that has its number by now.
#[derive(Debug)]
pub struct Process(OwnedFd);

impl Process {
    /// A child that nobody has waited for yet.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn of(child: &Child) -> io::Result<Self> {
        Ok(Self(pidfd_open(Pid::from_child(child), PidfdFlags::empty())?))
    }

    /// Kills it, if it has not ended.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.0, Signal::KILL);
    }
}

/// Ends the process without anything that another thread could hold up: as far as the devices are concerned, a kill.
pub fn end_at_once(code: u8) -> ! {
    // SAFETY: no memory is touched; whatever was written to files is the kernel's by now.
    unsafe { libc::_exit(code.into()) }
}

/// Goes on when the terminal that it was started from closes: guests live on too, and a supervisor would take an end in good
/// order for wanted.
pub fn ignore_hang_up() {
    // SAFETY: no handler runs; the disposition of a signal that nothing else here relies on.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// Has other threads of the process be told to end it: the kernel gives a signal to the thread that began first, and a device
/// that stands still can hold that one in a call which no signal interrupts.
pub fn leave_signals_to_others() {
    // SAFETY: a set of this function's own, and the mask of this thread alone.
    unsafe {
        let mut set = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigemptyset(set.as_mut_ptr());
        for signal in [libc::SIGINT, libc::SIGTERM] {
            libc::sigaddset(set.as_mut_ptr(), signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

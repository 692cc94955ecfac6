//! A process that ends a process group when the group's leader ends, however that ends.
//!
//! A death signal (prctl(2), PR_SET_PDEATHSIG) binds one child. The kernel of User Mode Linux has processes of its own, which have no such
//! binding and share its open files, so that none sees the other end hang up: without a guard they outlive a kernel that is killed, the
//! guest's user code among them. virtbench cannot end them itself when it is killed. A namespace of process ids would do, but ordinary
//! users may not make one everywhere.

use std::ffi::CStr;
use std::io;

/// What the guard is called in lists of processes: 15 characters at most.
const NAME: &CStr = c"virtbench-guard";

/// Starts a guard over the process group that the calling process leads.
///
/// To be called between fork and exec: it makes system calls only, neither allocates nor takes a lock, and lets go of every inherited
/// descriptor in the guard.
pub(crate) fn guard_own_group() -> io::Result<()> {
    let leader = rustix::process::getpid().as_raw_pid();
    // SAFETY: clone(2) without flags is a fork; the child calls functions that are safe in a signal handler and then ends. Without an exit
    // signal the leader, which knows nothing of this child, hears nothing of it.
    let forked = unsafe { libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0) };
    match forked {
        0 => guard(leader),
        1.. => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Waits until the leader has ended, and kills what is left of its group.
fn guard(leader: libc::pid_t) -> ! {
    // SAFETY: each is a system call on plain values; `signals` is initialised before it is read.
    unsafe {
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        let mut signals = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(signals.as_mut_ptr());
        let signals = signals.assume_init();
        libc::sigprocmask(libc::SIG_SETMASK, &raw const signals, std::ptr::null_mut());
        // It is no member of the group that it ends, and no Ctrl-C reaches it.
        libc::setpgid(0, 0);
        libc::prctl(libc::PR_SET_NAME, NAME.as_ptr());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGTERM);
        // Another signal, or one that came before the leader was bound, is told by whose child it is.
        while libc::getppid() == leader {
            libc::sigwaitinfo(&raw const signals, std::ptr::null_mut());
        }
        libc::kill(-leader, libc::SIGKILL);
        libc::_exit(0)
    }
}

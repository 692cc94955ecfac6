//! How a daemon's process ends, and by what it does not.

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

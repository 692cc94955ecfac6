//! A program with all that it starts: a process group.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};

use rustix::process::{Pid, Signal, kill_process_group};

/// The group of a program that was started.
#[derive(Debug)]
pub(crate) struct ProgramGroup(Option<Pid>);

impl ProgramGroup {
    /// Starts the program in a group of its own.
    pub(crate) fn spawn(command: &mut Command) -> io::Result<(Child, Self)> {
        let child = command.process_group(0).spawn()?;
        let group = Self(i32::try_from(child.id()).ok().and_then(Pid::from_raw));
        Ok((child, group))
    }

    /// Asks all of it to end.
    pub(crate) fn ask_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends all of it.
    pub(crate) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, signal);
        }
    }
}

/// The signal that ended a program, if one did.
pub(crate) fn signal_of(status: ExitStatus) -> Option<i32> {
    status.signal()
}

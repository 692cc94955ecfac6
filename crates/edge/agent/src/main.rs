//! `virtbench-agent`: init of a guest, or a child on an inherited socket (`--fd N`).

use std::os::fd::{FromRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rustix::process::{Signal, set_parent_process_death_signal};

fn main() -> ExitCode {
    if std::process::id() == 1 {
        virtbench_agent::run_as_init();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let fd = match arguments.as_slice() {
        [flag, fd] if flag == "--fd" => fd.parse::<RawFd>().ok().filter(|fd| *fd > 2),
        _ => None,
    };
    let Some(fd) = fd else {
        eprintln!("virtbench-agent is started by virtbench: virtbench-agent --fd N, N an open socket over 2");
        return ExitCode::from(2);
    };
    match native(fd) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("virtbench-agent: {error}");
            ExitCode::FAILURE
        }
    }
}

fn native(fd: RawFd) -> Result<(), Box<dyn std::error::Error>> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    // SAFETY: the parent passed this descriptor for the agent alone, and nothing else here uses it;
    // that it is open is checked by the first use below.
    let stream = unsafe { UnixStream::from_raw_fd(fd) };
    virtbench_agent::serve(stream.try_clone()?, stream)?;
    Ok(())
}
